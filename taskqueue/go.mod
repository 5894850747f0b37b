module github.com/ambit-go/ambit/taskqueue

go 1.26.0

require (
	github.com/ambit-go/ambit v0.0.0
	github.com/stretchr/testify v1.12.1
	github.com/tidwall/btree v1.8.2
	go.etcd.io/bbolt v1.5.0
	go.uber.org/goleak v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.45.0 // indirect
)

replace github.com/ambit-go/ambit => ../
