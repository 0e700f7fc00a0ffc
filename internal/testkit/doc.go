// Package testkit gives tests the servers they run against and a way to wait for them.
//
// Real servers come from the environment, which `make test` fills (see cmd/withservers). A test
// that asks for one is skipped where there is none, and fails instead when CI=true, so that a build
// cannot pass by testing nothing. With -short it is always skipped.
package testkit
