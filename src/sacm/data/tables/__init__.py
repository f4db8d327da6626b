"""Read what users have: files, frames and arrays, dates, columns, gaps."""
