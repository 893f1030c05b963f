// Package tui is the console: a screen on a controller, in its process or from
// afar.
//
// It asks its Source like any client and knows no other part of the program.
// Update routes, screens decide, View only formats. Only commands wait: no call
// of the Source is made in Update or View, and an answer comes back addressed to
// the screen that asked, with the number of its question, so that a stale one is
// dropped. What comes from the Source is cleaned of control and escape
// characters once, where it enters.
//
//	keys ──▶ keystream ──▶ binding ──▶ root or screen ──▶ request ──▶ Source
//	                                       ▲                            │
//	                                       └──────── answer ◀───────────┘
//
// Goroutines: Bubble Tea's own, which Run waits for; one that waits for the end
// of the terminal, as long as the screen is up.
package tui
