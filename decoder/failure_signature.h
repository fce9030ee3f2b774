#ifndef CLEW_DECODER_FAILURE_SIGNATURE_H_
#define CLEW_DECODER_FAILURE_SIGNATURE_H_

#include <cstddef>
#include <string>

#include "decoder/backtrace.h"

namespace clew::decoder {

// What makes two failures "the same", as text; the signature of a failure is
// its SHA-256. Neither addresses nor numbers of threads are in it, so
// recordings of one bug agree, whatever their seeds were.
//
//     clew failure 1
//     signal 6
//     8e63e3ca95c06d9204bc94213eea241fc207bc8b Deposit
//     93ac61ec5a8eb1396f9fbd350e3169a558528a40 +0x271c9
//
// The first line is the version of these rules. Then the kind: "signal N",
// "exit N", "hang", "none". Then the failing thread's first kSignatureFrames
// frames, innermost first, without those of the abort path; a run of equal ones
// counts as one. A frame is build-id (or the module's name where that is not
// known) and symbol, or offset where it has none; "?" without a module.
//
// Of a hang, no thread failed: the lines are those of all threads, of each the
// first kHangFrames outside the C library, sorted, each once.
//
// Not guaranteed: two bugs that are reached by the same functions have one
// signature; one bug that is reached in two ways has two, as has a bug in two
// builds of a program, or a bundle with and without its core dump.
inline constexpr size_t kSignatureFrames = 8;
inline constexpr size_t kHangFrames = 2;
std::string SignatureText(const Backtrace& backtrace);

// For people, one line: "SIGABRT in Deposit", "hang in Transfer, main".
std::string FailureTitle(const Backtrace& backtrace);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_FAILURE_SIGNATURE_H_
