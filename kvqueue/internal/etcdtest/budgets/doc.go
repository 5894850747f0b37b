// Package budgets measures the budgets of package kvqueue beside the queue recipe, its extension for
// many consumers, relaxed order and etcd's own recipe.Queue, on members of etcd that wait for their disks, and on
// SQLite. make kvbudgets prints the tables. They fail for nothing: machines differ, and most of them are busy.
//
// It is not in the bench module, as the recipes are internal to kvqueue.
package budgets
