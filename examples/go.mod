module github.com/ambit-go/ambit/examples

go 1.26.0

require github.com/ambit-go/ambit v0.0.0

replace github.com/ambit-go/ambit => ../
