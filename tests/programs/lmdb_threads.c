// Two threads that write to an LMDB environment and read it: the library writes
// with pwrite what it reads through a shared mapping.
#include <assert.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kRounds = 10 };

static MDB_env* environment;
static MDB_dbi database;

static void Check(int error) {
  if (error != 0) {
    fprintf(stderr, "%s\n", mdb_strerror(error));
    abort();
  }
}

// Reads the counter under `key` and writes one more, in two transactions: an
// update may be lost.
static unsigned AddOne(MDB_val key) {
  unsigned count = 0;
  MDB_txn* transaction;
  MDB_val value;
  Check(mdb_txn_begin(environment, NULL, MDB_RDONLY, &transaction));
  if (mdb_get(transaction, database, &key, &value) == 0) {
    count = *(unsigned*)value.mv_data;
  }
  mdb_txn_abort(transaction);
  ++count;
  value = (MDB_val){sizeof(count), &count};
  Check(mdb_txn_begin(environment, NULL, 0, &transaction));
  Check(mdb_put(transaction, database, &key, &value, 0));
  Check(mdb_txn_commit(transaction));
  return count;
}

static void* Work(void* last) {
  for (int i = 0; i < kRounds; ++i) {
    *(unsigned*)last = AddOne((MDB_val){5, "count"});
  }
  return NULL;
}

int main(void) {
  char folder[] = "/tmp/clew-lmdb-XXXXXX";
  MDB_txn* transaction;
  unsigned last[2] = {0, 0};
  pthread_t threads[2];
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) {
    abort();
  }
  Check(mdb_env_create(&environment));
  Check(mdb_env_open(environment, ".", MDB_NOSYNC, 0600));
  Check(mdb_txn_begin(environment, NULL, 0, &transaction));
  Check(mdb_dbi_open(transaction, NULL, 0, &database));
  Check(mdb_txn_commit(transaction));
  for (int i = 0; i < 2; ++i) {
    pthread_create(&threads[i], NULL, Work, &last[i]);
  }
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
  }
  unlink("data.mdb");
  unlink("lock.mdb");
  rmdir(folder);
  assert(last[0] == 2 * kRounds || last[1] == 2 * kRounds);
  puts("EXIT-SUCCESS");
  return 0;
}
