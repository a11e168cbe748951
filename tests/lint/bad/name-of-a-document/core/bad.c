/* See docs/LOST.md. */
