package service_test

var programs = map[string]func(){}
