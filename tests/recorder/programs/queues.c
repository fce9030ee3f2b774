// Threads that wait for each other by semaphores and message queues of System V
// and of POSIX, and a shared segment. Exits with 0 if each got what it should;
// prints what it had to leave out.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kRounds = 20 };

struct Message {
  long type;
  int value;
};

static int semaphores;
static int queue;
static mqd_t posix_queue = -1;
static int shared;

static void Check(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "queues: not so: %s: %s\n", what, strerror(errno));
    exit(1);
  }
}

static void Change(int which, int by) {
  struct sembuf operation = {(unsigned short)which, (short)by, 0};
  Check(semop(semaphores, &operation, 1) == 0, "semop");
}

static void Mutex(void) {
  Change(0, -1);
  const int seen = shared;
  shared = seen + 1;
  Change(0, 1);
}

static void* Answer(void* unused) {
  for (int i = 0; i < kRounds; ++i) {
    struct Message message;
    Check(msgrcv(queue, &message, sizeof(int), 1, 0) == sizeof(int), "msgrcv");
    message.type = 2;
    message.value *= 3;
    Check(msgsnd(queue, &message, sizeof(int), 0) == 0, "msgsnd");
    Mutex();
  }
  for (int i = 0; posix_queue != -1 && i < kRounds; ++i) {
    char text[16];
    unsigned priority = 0;
    Check(mq_receive(posix_queue, text, sizeof(text), &priority) == 4 &&
              priority == 7,
          "mq_receive");
  }
  Change(1, 1);
  return unused;
}

static void Ask(void) {
  for (int i = 0; i < kRounds; ++i) {
    struct Message message = {1, i};
    Check(msgsnd(queue, &message, sizeof(int), 0) == 0, "msgsnd");
    Check(msgrcv(queue, &message, sizeof(int), 2, 0) == sizeof(int), "msgrcv");
    Check(message.value == 3 * i, "the answer");
    Mutex();
  }
  for (int i = 0; posix_queue != -1 && i < kRounds; ++i) {
    Check(mq_send(posix_queue, "text", 4, 7) == 0, "mq_send");
  }
}

static void Make(void) {
  semaphores = semget(IPC_PRIVATE, 2, 0600);
  Check(semaphores >= 0, "semget");
  unsigned short values[2] = {1, 0};
  Check(semctl(semaphores, 0, SETALL, values) == 0, "SETALL");
  values[0] = 9;
  Check(semctl(semaphores, 0, GETALL, values) == 0 && values[0] == 1, "GETALL");
  struct semid_ds state;
  Check(semctl(semaphores, 0, IPC_STAT, &state) == 0 && state.sem_nsems == 2,
        "IPC_STAT of semaphores");
  queue = msgget(IPC_PRIVATE, 0600);
  Check(queue >= 0, "msgget");
  char name[32];
  snprintf(name, sizeof(name), "/clew-%d", getpid());
  struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 16};
  posix_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
  if (posix_queue == -1) {
    printf("no POSIX queues here: %s\n", strerror(errno));
    return;
  }
  Check(mq_unlink(name) == 0, "mq_unlink");
  Check(mq_getattr(posix_queue, &attributes) == 0 && attributes.mq_maxmsg == 4,
        "mq_getattr");
}

// A segment with something in it already.
static void Segment(void) {
  const int id = shmget(IPC_PRIVATE, 5000, 0600);
  Check(id >= 0, "shmget");
  char* first = shmat(id, NULL, 0);
  Check(first != (void*)-1, "shmat");
  strcpy(first + 4990, "kept");
  Check(shmdt(first) == 0, "shmdt");
  struct shmid_ds state = {0};
  Check(shmctl(id, IPC_STAT, &state) == 0 && state.shm_segsz == 5000,
        "its size");
  const char* again = shmat(id, NULL, SHM_RDONLY);
  Check(shmctl(id, IPC_RMID, NULL) == 0, "shmctl");
  Check(again != (void*)-1 && strcmp(again + 4990, "kept") == 0, "kept");
}

int main(void) {
  Segment();
  Make();
  pthread_t other;
  Check(pthread_create(&other, NULL, Answer, NULL) == 0, "pthread_create");
  Ask();
  Change(1, -1);  // until it is done
  Check(shared == 2 * kRounds, "the semaphore excludes");
  struct msqid_ds state;
  Check(msgctl(queue, IPC_STAT, &state) == 0 && state.msg_qnum == 0,
        "IPC_STAT of the queue");
  Check(msgctl(queue, IPC_RMID, NULL) == 0, "msgctl");
  Check(semctl(semaphores, 0, IPC_RMID) == 0, "semctl");
  return pthread_join(other, NULL);
}
