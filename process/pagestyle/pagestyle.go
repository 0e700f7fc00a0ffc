// Package pagestyle has what the status page and the HTML report look like alike: colours in light
// and dark, type, header, tiles and panels.
package pagestyle

import _ "embed"

// CSS comes in front of a page's own style.
//
//go:embed page.css
var CSS string
