#ifndef CLEW_TESTS_FIDELITY_EXPECTED_H_
#define CLEW_TESTS_FIDELITY_EXPECTED_H_

#include <istream>
#include <map>
#include <string>

#include "common/result.h"
#include "tests/fidelity/outcome.h"

namespace clew::fidelity {

struct Expected {
  Class which = Class::kSame;
  std::string reason;
};
using Table = std::map<std::string, Expected>;

// Reads rows of `program | class | reason`; a line that begins with '#' and an
// empty one are none. kCorruptInput, with the line's number: another form, an
// unknown class, no reason, a program twice, or a row of the class `same`,
// which is that of every program without a row.
[[nodiscard]] Result<Table> ReadTable(std::istream& text);

// The line of that row.
std::string RowOf(const std::string& program, const Expected& expected);

}  // namespace clew::fidelity

#endif  // CLEW_TESTS_FIDELITY_EXPECTED_H_
