// Package simulation runs pipelines (lanes, policy, sessions, deduper, forwarder, the store in
// memory) on a Kafka that is a model: partitions, a consumer group with generations, transactions,
// fences. It has only tests.
//
// The seam is consumer.TransactionalClient: everything above it is the product's own code, in its
// own goroutines and in virtual time (testing/synctest). Each call of a client waits until the
// scheduler lets it go on, and the scheduler does so when all other goroutines wait. So one call
// acts at a time, one source of random numbers decides which is next and what fails, and a seed
// replays exactly. The race detector does not see that order, so the tests are not built for it;
// the sessions have their own tests with it.
package simulation
