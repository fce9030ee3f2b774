#ifndef CLEW_BUNDLE_INPUT_LOG_H_
#define CLEW_BUNDLE_INPUT_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/os/file.h"
#include "common/result.h"

namespace clew::bundle {

// inputs.pb, per thread. One pass over the lengths finds the records of each
// thread; a record is parsed when it is pulled. Not thread-safe.
class InputLog final : public InputSource {
 public:
  [[nodiscard]] static Result<std::unique_ptr<InputLog>> Open(
      const std::string& path);
  // Over bytes that must outlive the object.
  [[nodiscard]] static Result<std::unique_ptr<InputLog>> Over(
      std::span<const std::byte> bytes, const std::string& name);

  [[nodiscard]] Result<std::optional<InputRecord>> Next(Tid thread) override;

  std::vector<Tid> threads() const;

 private:
  struct Thread {
    std::vector<uint64_t> offsets;  // of each record's length
    size_t next = 0;
  };
  explicit InputLog(std::string name) : name_(std::move(name)) {}
  Status Index();
  // Returns the bytes of the record whose length is at `offset`, which moves
  // past the record.
  Result<std::span<const std::byte>> RecordAt(uint64_t& offset) const;

  std::string name_;
  std::optional<MappedFile> file_;
  std::span<const std::byte> bytes_;
  std::map<Tid, Thread> threads_;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_INPUT_LOG_H_
