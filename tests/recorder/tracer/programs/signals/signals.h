// What the forms of signals.c share.
#ifndef TESTS_RECORDER_TRACER_SIGNALS_H_
#define TESTS_RECORDER_TRACER_SIGNALS_H_

#include <signal.h>
#include <stdint.h>

#define HIDDEN __attribute__((used, visibility("hidden")))

typedef void (*Handler)(int, siginfo_t*, void*);
struct Sender;
extern _Atomic long handled[];
extern unsigned char scratch[4096];
extern volatile siginfo_t last_info;
void Want(const char* what, uint64_t found, uint64_t wanted);
uint64_t Bit(int signal);
sigset_t Set(uint64_t bits);
uint64_t Bits(const sigset_t* set);
uint64_t Mask(void);
void SetMask(uint64_t bits);
void Install(int signal, Handler handler, int flags, uint64_t mask);
void UseAlternate(void);
int OnAlternate(uint64_t address);
void Spin(long turns);
void Delay(long turn);
struct Sender* StartSender(int first, int second, long count);
void EndSender(struct Sender* sender);
void OnCounted(int signal, siginfo_t* info, void* context);
void WantHandled(const char* what, int signal, long wanted);
void WantNone(const char* what, long result);
void WantError(const char* what, long result, int error);
void OnRemembered(int signal, siginfo_t* info, void* context);

void Registers(long count);
void Frame(long count);
void Nested(long count);
void Jumps(long count);
void Repair(long count);
void RepairStepped(long count);
void Calls(long count);
void Processes(long count);

#endif
