#ifndef CLEW_DECODER_FAILURE_SIGNATURE_H_
#define CLEW_DECODER_FAILURE_SIGNATURE_H_

#include <cstddef>
#include <string>

#include "common/bundle_facts.h"
#include "decoder/backtrace.h"

namespace clew::decoder {

// What makes two failures "the same", as text; the signature of a failure is
// its SHA-256. Neither addresses nor numbers of threads are in it, so
// recordings of one bug agree, whatever their seeds were.
//
//     clew failure 2
//     signal 6
//     bank Deposit
//     libwork.so +0x1c of 0x74
//
// The first line is the version of these rules, kSignatureRules. Then the kind:
// "signal N", "exit N", "hang", "none". Then the failing thread's first
// kSignatureFrames frames, innermost first, without those of the abort path; a
// run of equal ones counts as one. A frame is module and symbol; "?" without a
// module.
//
// No build-id is in it, nor an offset in a file, so that a program keeps its
// groups when it is built again. Of a module's name, what follows ".so" is left
// out; of a symbol, what a compiler appends to it: the version ("@GLIBC_2.34"),
// the number of a clone (".part.0", ".cold"), Rust's digest. A frame without a
// symbol is named by its place in its row of the unwinding table (CodePlace);
// one of the C library by nothing, as its next version has it elsewhere, and
// neither has one that no table covers.
//
// Of a hang, no thread failed: the lines are those of all threads, of each the
// first kHangFrames outside the C library, sorted, each once.
//
// Not guaranteed: two bugs that are reached by the same functions have one
// signature; one bug that is reached in two ways has two, as has a bug in two
// builds that inline differently, in two of a stripped program whose failing
// function was changed, or a bundle with and without its core dump.
inline constexpr size_t kSignatureFrames = 8;
inline constexpr size_t kHangFrames = 2;
std::string SignatureText(const Backtrace& backtrace);

// For people, one line: "bank: SIGSEGV at 0x8 in Deposit", "bank: hang in
// Transfer, main", "bank: Assertion `balance == 30' failed (SIGABRT in main)".
// An address is told only where it is near 0 and not 0, which also stands for
// none: others are chance.
std::string FailureTitle(const Backtrace& backtrace);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_FAILURE_SIGNATURE_H_
