/* See docs/GUIDE.md, "Part one". */
