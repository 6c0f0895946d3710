/* sqlite_gather.h - an SQLite VFS that writes the log and the database in large pieces: writes that follow each other are gathered, and go to the file in one call before
 * anything could see the difference (a sync, a read of these bytes, the file's size, its end). SQLite itself writes each page of a commit in two calls,
 * and each page of a checkpoint in one.
 *
 * Nothing is promised earlier than before: a commit is durable when its sync has returned, which writes what was gathered first. An error of the write
 * then comes from the sync instead; SQLITE_FULL still means that the last frame of the commit is not whole. A checkpoint syncs the database before it
 * counts a page as copied. Every other file is that of the VFS below. */
#ifndef NONBIS_SERVER_STORE_SQLITE_GATHER_H
#define NONBIS_SERVER_STORE_SQLITE_GATHER_H

/* Registers it above what is SQLite's default VFS now; its name, for sqlite3_open_v2. Files that are open keep the one below them. Not while another
 * thread opens a store. NULL where SQLite has none, since it had no memory to start: opening says so then. */
const char *sqlite_gather_vfs(void);

#endif
