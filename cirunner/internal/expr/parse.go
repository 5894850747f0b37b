package expr

// maxDepth bounds parentheses in parentheses.
const maxDepth = 50

// A parser reads tokens by descent: either reads ||, both reads &&, comparison
// what is between them.
type parser struct {
	tokens []token
	i      int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.i] }

// take takes the next token if it is of a kind.
func (p *parser) take(k kind) bool {
	if p.tokens[p.i].kind != k {
		return false
	}
	p.i++
	return true
}

func (p *parser) either() (node, error) { return p.chain("||", p.both) }
func (p *parser) both() (node, error)   { return p.chain("&&", p.comparison) }

// chain reads operands of an operator, of which the first two belong together.
func (p *parser) chain(operator kind, operand func() (node, error)) (node, error) {
	left, err := operand()
	for err == nil && p.take(operator) {
		var right node
		if right, err = operand(); err == nil {
			left = binary{operator, left, right}
		}
	}
	return left, err
}

func (p *parser) comparison() (node, error) {
	left, err := p.operand()
	for err == nil {
		operator := p.peek().kind
		switch operator {
		case "==", "!=", "=~", "!~":
		default:
			return left, nil
		}
		p.i++
		var right node
		if right, err = p.operand(); err == nil {
			left = binary{operator, left, right}
		}
	}
	return nil, err
}

func (p *parser) operand() (node, error) {
	t := p.peek()
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, &Error{t.at, "the expression is too deep"}
	}
	if t.kind != end {
		p.i++
	}
	switch t.kind {
	case "(":
		inner, err := p.either()
		if err == nil && !p.take(")") {
			err = &Error{t.at, "this ( is not closed"}
		}
		return inner, err
	case "!":
		inner, err := p.operand()
		return not{inner}, err
	case variable:
		return name(t.text), nil
	case literal:
		return constant{t.text}, nil
	case word:
		return constant{map[string]any{"true": true, "false": false}[t.text]}, nil
	case pattern:
		re, err := compile(t.text)
		if err != nil {
			return nil, &Error{t.at, err.Error()}
		}
		return constant{re}, nil
	}
	return nil, &Error{t.at, "a variable or a value is missing before " + t.String()}
}
