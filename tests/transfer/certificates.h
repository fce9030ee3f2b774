#ifndef CLEW_TESTS_TRANSFER_CERTIFICATES_H_
#define CLEW_TESTS_TRANSFER_CERTIFICATES_H_

#include <string>

namespace clew::transfer {

// A certificate authority in a folder of the test's, by openssl(1). Keys are
// elliptic, which are made at once.
class TestAuthority {
 public:
  // Makes <folder>/<name>.crt and .key, signed by itself.
  TestAuthority(const std::string& folder, const std::string& name);

  // Makes <folder>/<file>.crt and .key for `common_name`. `extensions` are
  // lines of openssl's configuration; valid from `days_from` to `days_to` of
  // now, either may be negative.
  void Issue(const std::string& file, const std::string& common_name,
             const std::string& extensions, int days_from = -1,
             int days_to = 1) const;

  std::string cert() const { return PathOf(name_, "crt"); }
  std::string PathOf(const std::string& file, const std::string& kind) const {
    return folder_ + "/" + file + "." + kind;
  }

 private:
  const std::string folder_;
  const std::string name_;
};

}  // namespace clew::transfer

#endif  // CLEW_TESTS_TRANSFER_CERTIFICATES_H_
