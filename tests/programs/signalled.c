// A thread waits for signals that another one sends it: to the thread, for a
// handler without and one with a siginfo, and to the process. Nothing but these
// keeps the two in order. The end is always the same assertion.
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const int kSignals[] = {SIGUSR1, SIGUSR2, SIGALRM};
static volatile sig_atomic_t handled;  // by the thread that waits
static pthread_t receiver;

static void OnSignal(int signal) {
  (void)signal;
  ++handled;
}

static void OnInfo(int signal, siginfo_t* info, void* context) {
  (void)context;
  handled += info->si_signo == signal;
}

static void* Receive(void* unused) {
  sigset_t wanted;
  sigfillset(&wanted);
  for (int i = 0; i < 3; ++i) {
    sigdelset(&wanted, kSignals[i]);
    while (handled <= i) {
      sigsuspend(&wanted);
    }
    sigaddset(&wanted, kSignals[i]);
  }
  return unused;
}

static void* Send(void* unused) {
  assert(pthread_kill(receiver, SIGUSR1) == 0);
  assert(pthread_kill(receiver, SIGUSR2) == 0);
  assert(kill(getpid(), SIGALRM) == 0);
  return unused;
}

int main(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int i = 0; i < 3; ++i) {
    struct sigaction action = {.sa_handler = OnSignal};
    if (i > 0) {
      action.sa_flags = SA_SIGINFO;
      action.sa_sigaction = OnInfo;
    }
    sigaction(kSignals[i], &action, NULL);
    sigaddset(&blocked, kSignals[i]);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  pthread_t sender;
  pthread_create(&receiver, NULL, Receive, NULL);
  pthread_create(&sender, NULL, Send, NULL);
  pthread_join(receiver, NULL);
  pthread_join(sender, NULL);
  assert(handled != 3);
  puts("EXIT-SUCCESS");
  return 0;
}
