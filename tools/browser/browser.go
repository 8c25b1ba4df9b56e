// Package browser has tests that look at the pages of gnnstore in a browser.
package browser
