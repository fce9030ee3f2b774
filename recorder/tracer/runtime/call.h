#ifndef CLEW_RECORDER_TRACER_RUNTIME_CALL_H_
#define CLEW_RECORDER_TRACER_RUNTIME_CALL_H_

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstdint>

// System calls of the runtime itself, and of the program through it.

namespace clew::tracer {

// Returns what the kernel returns: an error as -errno.
inline uint64_t Call(uint64_t number, uint64_t a = 0, uint64_t b = 0,
                     uint64_t c = 0, uint64_t d = 0, uint64_t e = 0,
                     uint64_t f = 0) {
  uint64_t result = number;
  register uint64_t r10 asm("r10") = d;
  register uint64_t r8 asm("r8") = e;
  register uint64_t r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <class T>
uint64_t AddrOf(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// Source: x86 kernel, include/linux/err.h, MAX_ERRNO.
inline bool IsError(uint64_t result) { return result > -4096ull; }

// Maps zeros at `addr`, where nothing is mapped. Returns `addr` or an error.
inline uint64_t MapZeros(uint64_t addr, uint64_t bytes, int protection) {
  return Call(SYS_mmap, addr, bytes, static_cast<uint64_t>(protection),
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
              ~0ull);
}

// Waits until another thread or process has changed the word of shared memory
// at `word` from `value` and woken its waiters; so long at most (1 s or less),
// and maybe not at all.
inline void WaitAWhile(uint64_t word, uint32_t value,
                       int64_t most_ns = 999'999'999) {
  const timespec most = {.tv_sec = 0, .tv_nsec = most_ns};
  Call(SYS_futex, word, FUTEX_WAIT, value, AddrOf(&most));
}

// Wakes who waits at the word of shared memory at `word`, up to so many.
inline void WakeAt(uint64_t word, uint64_t waiters = 1) {
  Call(SYS_futex, word, FUTEX_WAKE, waiters);
}

// The time: what the thread wrote before is there for all others by then, and
// what it reads behind it, it reads later.
// Source: Intel SDM vol. 2, "RDTSC"; "MFENCE", "LFENCE".
inline uint64_t Tsc() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("mfence\n\tlfence\n\trdtsc\n\tlfence"
               : "=a"(low), "=d"(high)
               :
               : "memory");
  return uint64_t{high} << 32 | low;
}

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_CALL_H_
