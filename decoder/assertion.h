#ifndef CLEW_DECODER_ASSERTION_H_
#define CLEW_DECODER_ASSERTION_H_

#include <optional>
#include <string>
#include <string_view>

#include "bundle/bundle.h"
#include "common/result.h"

// The text of a failed assertion: file, line, function and expression. A
// program's source has all of them, so they may leave a host where its memory
// may not. Whether a message that has the form of one is one, nothing in it
// tells: any program may print what it likes. So only that is taken for an
// assertion whose file, function and expression each stand, up to a NUL, in one
// image of the bundle: images are sent as they are, so the text adds nothing to
// what is sent.
//
//   bank: bank.c:62: main: Assertion `balance == expected' failed.
//         ~~~~~~     ~~~~              ~~~~~~~~~~~~~~~~~~~
//         each of these is a string in images/5c0f.../bank
//
// The program's name is none of it: whoever starts a program chooses it.
//
// Source: glibc assert/assert.c, __assert_fail_base.

namespace clew::decoder {

struct Assertion {
  std::string file;
  std::string line;      // decimal digits
  std::string function;  // empty: not said
  std::string expression;
  bool operator==(const Assertion&) const = default;
};

// Of a message as assert() prints it, with or without the program's name, the
// period and the end of the line. nullopt: it has another form, characters
// other than printable ASCII ones, or more than Unwinder::kMessageBytesMax
// bytes.
std::optional<Assertion> ParseAssertion(std::string_view message);
// "bank.c:62: main: Assertion `balance == expected' failed".
std::string ToString(const Assertion& assertion);

// The assertion that ended the run, by the core dump and the images. nullopt:
// none, or one that no image has. Errors as ReadBacktrace.
[[nodiscard]] Result<std::optional<Assertion>> FindAssertion(
    const bundle::Bundle& bundle);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_ASSERTION_H_
