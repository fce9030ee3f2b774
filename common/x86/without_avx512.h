#ifndef CLEW_COMMON_X86_WITHOUT_AVX512_H_
#define CLEW_COMMON_X86_WITHOUT_AVX512_H_

namespace clew::x86 {

// In the environment of a program that begins: glibc does without AVX-512, and
// without XSAVEC, which saves its state. Source: GNU C Library manual,
// "Hardware Capability Tunables".
inline constexpr const char* kWithoutAvx512 =
    "GLIBC_TUNABLES=glibc.cpu.hwcaps="
    "-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-XSAVEC";

}  // namespace clew::x86

#endif  // CLEW_COMMON_X86_WITHOUT_AVX512_H_
