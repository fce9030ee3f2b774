#include "machine/vector/x87_op.h"

#include <cstddef>

#include "machine/vector/host_op.h"

namespace clew::machine {
namespace {

// FLDT and FSTPT access the first ten bytes.
static_assert(offsetof(Float80, significand) == 0);
static_assert(offsetof(Float80, sign_exponent) == 8);

constexpr uint16_t kMasked = 0x3f;
constexpr uint16_t kTold = kX87Exceptions | kX87Conditions;

}  // namespace

// One statement, so that the compiler can move nothing in between: the host's
// control word is put away, the guest's is in force from a clean state on.
#define CLEW_X87_ENTER "fnstcw %[host]\n\tfninit\n\tfldcw %[control]\n\t"
#define CLEW_X87_LEAVE "\n\tfninit\n\tfldcw %[host]"
#define CLEW_X87_STATUS "\n\tfnstsw %[status]\n\t"

// Runs `text` with `output` an asm output operand (or none).
#define CLEW_X87_RUN(text, output, ...)                              \
  const auto control = static_cast<uint16_t>(env.control | kMasked); \
  uint16_t host;                                                     \
  uint16_t status;                                                   \
  __asm__ volatile(CLEW_X87_ENTER text CLEW_X87_LEAVE                \
                   : output[host] "=m"(host), [status] "=m"(status)  \
                   : [control] "m"(control), __VA_ARGS__             \
                   : CLEW_X87_CLOBBERS);                             \
  env.status = status & kTold

#define CLEW_RESULT(name) [result] "=m"(name),
#define CLEW_NO_RESULT

#define CLEW_X87_DEFINE(Name, text)                                \
  Float80 Name(const Float80& a, const Float80& b, X87Env& env) {  \
    Float80 result;                                                \
    CLEW_X87_RUN("fldt %[b]\n\tfldt %[a]\n\t" text CLEW_X87_STATUS \
                 "fstpt %[result]",                                \
                 CLEW_RESULT(result), [a] "m"(a), [b] "m"(b));     \
    return result;                                                 \
  }
CLEW_X87_BINARY_OPS(CLEW_X87_DEFINE)
#undef CLEW_X87_DEFINE

#define CLEW_X87_DEFINE(Name, text)                                      \
  Float80 Name(const Float80& a, X87Env& env) {                          \
    Float80 result;                                                      \
    CLEW_X87_RUN("fldt %[a]\n\t" text CLEW_X87_STATUS "fstpt %[result]", \
                 CLEW_RESULT(result), [a] "m"(a));                       \
    return result;                                                       \
  }
CLEW_X87_UNARY_OPS(CLEW_X87_DEFINE)
#undef CLEW_X87_DEFINE

#define CLEW_X87_DEFINE_FOR(Name, text, Bits)                        \
  Float80 Name(const Float80& a, Bits bits, X87Env& env) {           \
    Float80 result;                                                  \
    CLEW_X87_RUN("fldt %[a]\n\t" text " %[bits]" CLEW_X87_STATUS     \
                 "fstpt %[result]",                                  \
                 CLEW_RESULT(result), [a] "m"(a), [bits] "m"(bits)); \
    return result;                                                   \
  }
#define CLEW_X87_DEFINE(Name, text)             \
  CLEW_X87_DEFINE_FOR(Name, text "s", uint32_t) \
  CLEW_X87_DEFINE_FOR(Name, text "l", uint64_t)
CLEW_X87_MEMORY_OPS(CLEW_X87_DEFINE)
#undef CLEW_X87_DEFINE

#define CLEW_X87_DEFINE(Name, text)                                           \
  Float80 Name(X87Env& env) {                                                 \
    Float80 result;                                                           \
    CLEW_X87_RUN(text CLEW_X87_STATUS "fstpt %[result]", CLEW_RESULT(result), \
                 "m"(env));                                                   \
    return result;                                                            \
  }
CLEW_X87_CONSTANTS(CLEW_X87_DEFINE)
#undef CLEW_X87_DEFINE

#define CLEW_X87_DEFINE(Name, text)                                 \
  void Name(const Float80& a, const Float80& b, X87Env& env) {      \
    CLEW_X87_RUN("fldt %[b]\n\tfldt %[a]\n\t" text CLEW_X87_STATUS, \
                 CLEW_NO_RESULT, [a] "m"(a), [b] "m"(b));           \
  }
CLEW_X87_COMPARISONS(CLEW_X87_DEFINE)
#undef CLEW_X87_DEFINE

void Fxam(const Float80& a, X87Env& env) {
  CLEW_X87_RUN("fldt %[a]\n\tfxam" CLEW_X87_STATUS, CLEW_NO_RESULT, [a] "m"(a));
}

// Name(bits, env): loads a memory format.
#define CLEW_X87_LOAD(Name, Bits, mnemonic)                             \
  Float80 Name(Bits bits, X87Env& env) {                                \
    Float80 result;                                                     \
    CLEW_X87_RUN(mnemonic " %[bits]" CLEW_X87_STATUS "fstpt %[result]", \
                 CLEW_RESULT(result), [bits] "m"(bits));                \
    return result;                                                      \
  }
CLEW_X87_LOAD(FromFloat32, uint32_t, "flds")
CLEW_X87_LOAD(FromFloat64, uint64_t, "fldl")
CLEW_X87_LOAD(FromInt16, uint16_t, "filds")
CLEW_X87_LOAD(FromInt32, uint32_t, "fildl")
CLEW_X87_LOAD(FromInt64, uint64_t, "fildll")
CLEW_X87_LOAD(FromBcd, const Float80&, "fbld")

// Name(value, env): stores a memory format; C1 comes from the store itself.
#define CLEW_X87_STORE(Name, Bits, mnemonic)                            \
  Bits Name(const Float80& value, X87Env& env) {                        \
    Bits result{};                                                      \
    CLEW_X87_RUN("fldt %[a]\n\t" mnemonic " %[result]" CLEW_X87_STATUS, \
                 CLEW_RESULT(result), [a] "m"(value));                  \
    return result;                                                      \
  }
CLEW_X87_STORE(ToFloat32, uint32_t, "fstps")
CLEW_X87_STORE(ToFloat64, uint64_t, "fstpl")
CLEW_X87_STORE(ToInt16, uint16_t, "fistps")
CLEW_X87_STORE(ToInt32, uint32_t, "fistpl")
CLEW_X87_STORE(ToInt64, uint64_t, "fistpll")
CLEW_X87_STORE(TruncateToInt16, uint16_t, "fisttps")
CLEW_X87_STORE(TruncateToInt32, uint32_t, "fisttpl")
CLEW_X87_STORE(TruncateToInt64, uint64_t, "fisttpll")
CLEW_X87_STORE(ToBcd, Float80, "fbstp")

}  // namespace clew::machine
