// String instructions, each with a REP prefix (one instruction in a trace, with
// all its iterations), without a C library.
#include "tests/programs/freestanding/static_start.h"

enum { kBytes = 300 };

static unsigned char from[kBytes], to[kBytes];

static void Fill(unsigned char* out, unsigned char value, unsigned long count) {
  __asm__ volatile("rep stosb"
                   : "+D"(out), "+c"(count)
                   : "a"(value)
                   : "memory");
}

static void Copy(unsigned char* out, const unsigned char* in,
                 unsigned long count) {
  __asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(count)::"memory");
}

static unsigned long Length(const unsigned char* text) {
  unsigned long count = ~0ul;
  __asm__ volatile("repne scasb" : "+D"(text), "+c"(count) : "a"(0) : "memory");
  return ~count - 1;
}

static int Equal(const unsigned char* a, const unsigned char* b,
                 unsigned long count) {
  unsigned char equal = 1;
  __asm__ volatile("repe cmpsb\n\tsete %0"
                   : "=q"(equal), "+S"(a), "+D"(b), "+c"(count)::"cc",
                     "memory");
  return equal;
}

int Main(void) {
  for (unsigned long count = 1; count < kBytes; count += 37) {
    Fill(from, 'x', count);
    Copy(to, from, kBytes);
    if (Length(to) != count || !Equal(from, to, kBytes)) {
      return 1;
    }
    to[count / 2] = 'y';
    if (Equal(from, to, kBytes)) {
      return 2;
    }
  }
  return 0;
}
