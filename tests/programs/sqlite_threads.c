// Four threads, each with a connection of its own, write to one SQLite database
// and read it back. Does not fail; what it prints does not depend on the order
// of the threads.
//
// Usage: sqlite_threads [database-file [rows]]
// default: shared, in memory; 25 rows a thread
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { kThreads = 4 };

static const char* path = "file:clew?mode=memory&cache=shared";
static int rows = 25;

static void Fail(sqlite3* db, const char* what) {
  fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
  exit(1);
}

static int Retry(void* unused, int tries) {
  (void)unused;
  sched_yield();
  return tries < 1000000;
}

static sqlite3* Open(void) {
  sqlite3* db = NULL;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
  if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK) {
    Fail(db, "open");
  }
  sqlite3_busy_handler(db, Retry, NULL);
  return db;
}

// A shared cache reports a locked table without asking the busy handler.
static void Execute(sqlite3* db, const char* sql) {
  int code;
  while ((code = sqlite3_exec(db, sql, NULL, NULL, NULL)) == SQLITE_LOCKED ||
         code == SQLITE_BUSY) {
    sched_yield();
  }
  if (code != SQLITE_OK) {
    Fail(db, sql);
  }
}

static void* Writer(void* id) {
  sqlite3* db = Open();
  for (int i = 0; i < rows; ++i) {
    char sql[96];
    snprintf(sql, sizeof sql, "INSERT INTO t VALUES(%ld, %d)", (long)id, i * i);
    Execute(db, sql);
  }
  sqlite3_close(db);
  return NULL;
}

static int PrintRow(void* unused, int columns, char** values, char** names) {
  (void)unused;
  for (int i = 0; i < columns; ++i) {
    printf("%s=%s\n", names[i], values[i]);
  }
  return 0;
}

int main(int argc, char** argv) {
  path = argc > 1 ? argv[1] : path;
  rows = argc > 2 ? atoi(argv[2]) : rows;
  sqlite3* db = Open();
  Execute(db, "DROP TABLE IF EXISTS t; CREATE TABLE t(id INTEGER, x INTEGER)");
  pthread_t threads[kThreads];
  for (long i = 0; i < kThreads; ++i) {
    pthread_create(&threads[i], NULL, Writer, (void*)i);
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  if (sqlite3_exec(db, "SELECT count(*) AS n, sum(x * (id + 1)) AS s FROM t",
                   PrintRow, NULL, NULL) != SQLITE_OK) {
    Fail(db, "select");
  }
  sqlite3_close(db);
  puts("EXIT-SUCCESS");
  return 0;
}
