// Package proposal looks at the newest records of a topic and proposes where their message ID
// stands, which fields of a value do not count, and how long claims should hold. It guesses, says
// what it saw, and leaves the decision to a person.
package proposal
