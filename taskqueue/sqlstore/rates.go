package sqlstore

// readRates reads when the rates of groups are full again, as far as the claim does not know it.
func (c *claiming) readRates(groups map[string]bool) error {
	k := c.keys
	q := query{bulk: readPace, each: each2(func(group string, at float64) { k.fullAt[group] = at })}
	for group := range groups {
		if _, known := k.fullAt[group]; known {
			continue
		}
		if l := k.Group(group); l != nil && l.Rate > 0 {
			k.fullAt[group] = 0
			q.rows = append(q.rows, []any{c.queue, "f" + group})
		}
	}
	return c.t.run(q)
}

// knowRates is readRates for tasks that were found.
func (c *claiming) knowRates(found []*record) error {
	if !c.keys.any() {
		return nil
	}
	groups := map[string]bool{}
	for _, r := range found {
		if group, l := c.keys.Of(r.LimitKey, r.Type); l != nil {
			groups[group] = true
		}
	}
	return c.readRates(groups)
}
