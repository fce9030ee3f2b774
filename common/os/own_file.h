#ifndef CLEW_COMMON_OS_OWN_FILE_H_
#define CLEW_COMMON_OS_OWN_FILE_H_

#include <string>
#include <vector>

// Files that are installed together with a program.

namespace clew {

// Returns the path of the program that runs; empty without /proc.
std::string OwnProgram();

// Returns where the file `name` of that program may be, best first: beside it,
// as in a build folder, and in ../lib/clew from there, as packages put it.
std::vector<std::string> PlacesBeside(const std::string& program,
                                      const std::string& name);

// Returns the first of `places` that is a file which this process may use as
// `mode` says (access(2): R_OK, X_OK); empty if there is none.
std::string FirstFile(const std::vector<std::string>& places, int mode);

}  // namespace clew

#endif  // CLEW_COMMON_OS_OWN_FILE_H_
