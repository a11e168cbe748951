/* Process 0 prints, and nobody else. */
