module github.com/ambit-go/ambit/kvqueue

go 1.26.0

replace github.com/ambit-go/ambit => ../

require (
	github.com/ambit-go/ambit v0.0.0-00010101000000-000000000000
	github.com/google/btree v1.1.3
	github.com/stretchr/testify v1.12.1
	go.etcd.io/bbolt v1.5.0
	go.uber.org/goleak v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.45.0 // indirect
)
