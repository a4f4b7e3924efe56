"""Files that stages write and read: run folders, workspaces, tables, the journal."""
