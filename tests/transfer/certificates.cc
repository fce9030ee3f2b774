#include "tests/transfer/certificates.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>

#include "common/check.h"

namespace clew::transfer {
namespace {

void Run(const std::string& command) {
  CLEW_CHECK(std::system((command + " >/dev/null 2>&1").c_str()) == 0, "{}",
             command);
}

std::string Day(int days_from_now) {
  const std::time_t then = std::time(nullptr) + days_from_now * 86400;
  return fmt::format("{:%Y%m%d%H%M%SZ}", fmt::gmtime(then));
}

}  // namespace

TestAuthority::TestAuthority(const std::string& folder, const std::string& name)
    : folder_(folder), name_(name) {
  Run(
      fmt::format("openssl req -x509 -newkey ec -pkeyopt "
                  "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj '/CN={}' "
                  "-keyout '{}' -out '{}'",
                  name, PathOf(name, "key"), cert()));
}

void TestAuthority::Issue(const std::string& file,
                          const std::string& common_name,
                          const std::string& extensions, int days_from,
                          int days_to) const {
  Run(
      fmt::format("openssl req -newkey ec -pkeyopt "
                  "ec_paramgen_curve:prime256v1 -nodes -subj '/CN={}' -keyout "
                  "'{}' -out '{}'",
                  common_name, PathOf(file, "key"), PathOf(file, "csr")));
  const std::string base = folder_ + "/" + file;
  std::ofstream(base + ".index").flush();
  std::ofstream(base + ".cnf")
      << "[ca]\ndefault_ca=d\n[d]\ndatabase=" << base << ".index\n"
      << "new_certs_dir=" << folder_ << "\nrand_serial=yes\n"
      << "default_md=sha256\npolicy=p\nx509_extensions=x\nunique_subject=no\n"
      << "[p]\ncommonName=supplied\n[x]\nbasicConstraints=CA:FALSE\n"
      << extensions << "\n";
  Run(fmt::format(
      "openssl ca -batch -notext -config '{0}.cnf' -cert '{1}' "
      "-keyfile '{2}' -in '{0}.csr' -out '{0}.crt' -startdate {3} "
      "-enddate {4}",
      base, cert(), PathOf(name_, "key"), Day(days_from), Day(days_to)));
}

}  // namespace clew::transfer
