#ifndef CLEW_COMMON_OS_EXEC_ARGUMENTS_H_
#define CLEW_COMMON_OS_EXEC_ARGUMENTS_H_

#include <string>
#include <vector>

namespace clew {

// `texts` as exec(3) wants arguments and environment, which it does not write
// to: with a null pointer behind the last. Borrows from `texts`.
std::vector<char*> ExecArguments(const std::vector<std::string>& texts);

}  // namespace clew

#endif  // CLEW_COMMON_OS_EXEC_ARGUMENTS_H_
