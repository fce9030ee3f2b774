// Signals that come at any time, and must leave all as it was. The first
// argument says what is tried, the second with how many signals. The forms are
// in the files signal_*.c.
#define _GNU_SOURCE
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { kAlternateSize = 1 << 18, kSignals = 65 };

// What was handled so far, by the signal's number.
HIDDEN _Atomic long handled[kSignals];
static _Alignas(64) char alternate[kAlternateSize];

void Want(const char* what, uint64_t found, uint64_t wanted) {
  if (found != wanted) {
    dprintf(1, "%s: found %#lx, wanted %#lx\n", what, found, wanted);
    _exit(1);
  }
}

uint64_t Bit(int signal) { return 1ul << (signal - 1); }

// The kernel's sets are of 64 bits, those of the C library are longer.
sigset_t Set(uint64_t bits) {
  sigset_t set;
  sigemptyset(&set);
  memcpy(&set, &bits, sizeof bits);
  return set;
}

uint64_t Bits(const sigset_t* set) {
  uint64_t bits = 0;
  memcpy(&bits, set, sizeof bits);
  return bits;
}

uint64_t Mask(void) {
  sigset_t set;
  Want("sigprocmask", sigprocmask(SIG_BLOCK, NULL, &set), 0);
  return Bits(&set);
}

void SetMask(uint64_t bits) {
  const sigset_t set = Set(bits);
  Want("sigprocmask", sigprocmask(SIG_SETMASK, &set, NULL), 0);
}

void Install(int signal, Handler handler, int flags, uint64_t mask) {
  struct sigaction action = {.sa_sigaction = handler,
                             .sa_mask = Set(mask),
                             .sa_flags = flags | SA_SIGINFO};
  Want("sigaction", sigaction(signal, &action, NULL), 0);
  handled[signal] = 0;
}

void UseAlternate(void) {
  const stack_t stack = {.ss_sp = alternate, .ss_size = kAlternateSize};
  Want("sigaltstack", sigaltstack(&stack, NULL), 0);
}

int OnAlternate(uint64_t address) {
  return address - (uintptr_t)alternate < kAlternateSize;
}

void Spin(long turns) {
  for (volatile long i = 0; i < turns; ++i) {
  }
}

// Lets others run for a while, always another one. A sleeper is woken by an
// interrupt wherever they are then, also where there is one processor.
void Delay(long turn) {
  const struct timespec short_time = {.tv_nsec = 1000 * (turn * 7 % 23)};
  if (turn % 4 == 0) {
    Spin(turn % 61 * 8);
  } else {
    nanosleep(&short_time, NULL);
  }
}

// A thread that sends up to two signals to the thread that starts it, each
// again when it was handled; `count` times, or until it is ended (-1).
struct Sender {
  pthread_t thread;
  pthread_t target;
  int signals[2];
  long count;
  _Atomic int ended;
};

static int SendNext(struct Sender* sender, int which, long* sent) {
  const int signal = sender->signals[which];
  if (signal == 0) {
    return 0;
  }
  if (handled[signal] < *sent) {
    return 1;
  }
  if (*sent == sender->count || sender->ended) {
    return 0;
  }
  ++*sent;
  Want("pthread_kill", pthread_kill(sender->target, signal), 0);
  return 1;
}

static void* Send(void* argument) {
  struct Sender* sender = argument;
  long sent[2] = {0, 0};
  for (long turn = 0;
       SendNext(sender, 0, &sent[0]) | SendNext(sender, 1, &sent[1]); ++turn) {
    Delay(turn);
  }
  return NULL;
}

// The thread has all signals blocked.
struct Sender* StartSender(int first, int second, long count) {
  struct Sender* sender = calloc(1, sizeof *sender);
  sender->target = pthread_self();
  sender->signals[0] = first;
  sender->signals[1] = second;
  sender->count = count;
  handled[first] = 0;
  handled[second] = 0;
  const uint64_t before = Mask();
  SetMask(~0ul);
  const int made = pthread_create(&sender->thread, NULL, Send, sender);
  Want("pthread_create", made, 0);
  SetMask(before);
  return sender;
}

// All that was sent has been handled afterwards.
void EndSender(struct Sender* sender) {
  sender->ended = sender->count < 0;
  pthread_join(sender->thread, NULL);
  free(sender);
}

void OnCounted(int signal, siginfo_t* info, void* context) {
  (void)context;
  Want("si_signo", info->si_signo, signal);
  ++handled[signal];
}

void WantHandled(const char* what, int signal, long wanted) {
  Want(what, handled[signal], wanted);
}

void WantNone(const char* what, long result) { Want(what, result, 0); }

void WantError(const char* what, long result, int error) {
  const int found = errno;
  Want(what, result, -1);
  Want(what, found, error);
}

volatile siginfo_t last_info;

void OnRemembered(int signal, siginfo_t* info, void* context) {
  last_info = *info;
  OnCounted(signal, info, context);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(long);
  } forms[] = {{"registers", Registers}, {"frame", Frame},
               {"nested", Nested},       {"longjmp", Jumps},
               {"repair", Repair},       {"calls", Calls},
               {"processes", Processes}, {"stepped", RepairStepped}};
  const char* what = argc > 1 ? argv[1] : "";
  const long count = argc > 2 ? strtol(argv[2], NULL, 10) : 3000;
  SetMask(0);
  prctl(PR_SET_TIMERSLACK, 1);  // Delay is short.
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
    if (strcmp(what, forms[i].name) == 0 && count > 0) {
      forms[i].run(count);
      return 0;
    }
  }
  fprintf(stderr, "signals: no such form, or no number: %s\n", what);
  return 2;
}
