#ifndef CLEW_CLI_IMAGE_GUIDE_H_
#define CLEW_CLI_IMAGE_GUIDE_H_

#include <cstdint>
#include <map>
#include <string>

#include "decoder/loaded_images.h"
#include "decoder/unwinder.h"
#include "solver/code_guide.h"

namespace clew::cli {

// What images say about places of a recorded process. The program's are those
// of all images but the C and C++ libraries and ld.so; of an image that knows
// source lines, those that have one: what is linked in without is a library.
class ImageGuide final : public solver::CodeGuide {
 public:
  // Both must outlive the object.
  ImageGuide(const decoder::LoadedImages& images, decoder::Unwinder& unwinder)
      : images_(images), unwinder_(unwinder) {}

  solver::CodeFacts At(TraceeAddr ip) override;
  solver::Owner OwnerOfData(TraceeAddr addr) override;

 private:
  // A function, or what of one without a symbol has one row in the unwinding
  // table. libdw looks through a whole table for each symbol.
  struct Function {
    uint64_t size_bytes = 0;
    solver::LockCall lock = solver::LockCall::kNone;
    bool has_lines = false;
  };
  const Function& FunctionAt(TraceeAddr ip);

  const decoder::LoadedImages& images_;
  decoder::Unwinder& unwinder_;
  std::map<uint64_t, Function> functions_;  // by address
};

// Whose the image of that name is, as a whole.
solver::Owner OwnerOfImage(const std::string& path);

}  // namespace clew::cli

#endif  // CLEW_CLI_IMAGE_GUIDE_H_
