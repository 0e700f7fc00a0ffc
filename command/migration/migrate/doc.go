// Package migrate copies the claims of a scope from one store into another one, as they are, and
// compares both. Who may call it when, and what has to be noted in the stores, is the caller's
// matter: nobody claims in either scope meanwhile.
//
// # Again
//
// A copy may be interrupted at any point and begun again. A claim that is there already is not
// touched: it is the same one, or it is told as a difference. What ends in between is not made any
// more, and what was made ends when the original does: ends are times, not time that is left.
//
// # Compared
//
// Only a comparison says that a copy is complete. It reads both stores, and looks for the claims of
// each in the other one. Claims that end within a few seconds are left out: one store may have
// ended them already.
package migrate
