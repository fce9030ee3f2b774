#ifndef CLEW_COMMON_TEXT_CONFIG_FILE_H_
#define CLEW_COMMON_TEXT_CONFIG_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace clew {

// A configuration file that people write:
//
//     # a comment, on a line of its own
//     key = value
//     [section]
//     key = value with blanks, as it stands
//
// Keys before the first section are in section "". A program asks for each key
// that it knows, which leaves the variable alone where the file has no such
// key, and calls Finish, which refuses keys that were not asked for. Every
// error is kInvalidArgument and names file and line:
//
//     /etc/clew/client.conf:3: port is "x1", wanted a number from 1 to 65535
//
// A value; not thread-safe.
class ConfigFile {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;

  // `source` names the file in messages. A key twice in one section (and a
  // section twice) is an error.
  [[nodiscard]] static Result<ConfigFile> Parse(std::string_view text,
                                                std::string source);
  // kSystem: cannot be read.
  [[nodiscard]] static Result<ConfigFile> Read(const std::string& path);
  // No key at all: for a file that need not exist.
  ConfigFile() = default;

  // In the order of the file, without "".
  const std::vector<std::string>& sections() const { return sections_; }

  [[nodiscard]] Status Text(std::string_view section, std::string_view key,
                            std::string* value);
  // Words with blanks between them.
  [[nodiscard]] Status Words(std::string_view section, std::string_view key,
                             std::vector<std::string>* value);
  // yes, true, on, 1; no, false, off, 0.
  [[nodiscard]] Status Flag(std::string_view section, std::string_view key,
                            bool* value);
  [[nodiscard]] Status Number(std::string_view section, std::string_view key,
                              uint64_t min, uint64_t max, uint64_t* value);
  // "4096", "64K", "16M", "2G", "1T": powers of 1024.
  [[nodiscard]] Status Bytes(std::string_view section, std::string_view key,
                             uint64_t min, uint64_t max, uint64_t* value);
  // "30", "30s", "5m", "2h", "7d".
  [[nodiscard]] Status Seconds(std::string_view section, std::string_view key,
                               uint64_t min, uint64_t max, uint64_t* value);

  // Refuses the first key that was not asked for; the message names those that
  // were.
  [[nodiscard]] Status Finish() const;

 private:
  struct Entry {
    std::string section;
    std::string key;
    std::string value;
    size_t line = 0;
    bool asked = false;
  };
  struct Unit {
    char letter;
    uint64_t factor;
  };

  [[nodiscard]] Status Add(std::string_view line, size_t number);
  [[nodiscard]] Status AddSection(std::string_view line, size_t number);
  // Marks the key as known; nullptr: not in the file.
  Entry* Ask(std::string_view section, std::string_view key);
  [[nodiscard]] Status Quantity(std::string_view section, std::string_view key,
                                const std::vector<Unit>& units, uint64_t min,
                                uint64_t max, std::string_view what,
                                uint64_t* value);
  template <class... Args>
  std::unexpected<Error> At(size_t line, fmt::format_string<Args...> format,
                            Args&&... args) const {
    return InvalidArgument("{}:{}: {}", source_, line,
                           fmt::format(format, std::forward<Args>(args)...));
  }

  std::string source_;
  std::vector<std::string> sections_;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;  // keys asked for, for messages
};

}  // namespace clew

#endif  // CLEW_COMMON_TEXT_CONFIG_FILE_H_
