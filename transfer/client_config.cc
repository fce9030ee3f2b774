#include "transfer/client_config.h"

#include <cerrno>

#include "common/text/config_file.h"

namespace clew::transfer {

Result<ClientOptions> ReadClientConfig(const std::string& path) {
  auto file = ConfigFile::Read(path);
  if (!file && file.error().sys_errno == ENOENT) {
    file = ConfigFile();
  }
  if (!file) {
    return std::unexpected(file.error());
  }
  ClientOptions options;
  CLEW_RETURN_IF_ERROR(file->Text("", "collector", &options.address));
  CLEW_RETURN_IF_ERROR(file->Text("", "ca", &options.ca_file));
  CLEW_RETURN_IF_ERROR(file->Text("", "certificate", &options.cert_file));
  CLEW_RETURN_IF_ERROR(file->Text("", "key", &options.key_file));
  CLEW_RETURN_IF_ERROR(file->Text("", "token_file", &options.token_file));
  CLEW_RETURN_IF_ERROR(
      file->Flag("", "insecure_loopback", &options.insecure_loopback));
  CLEW_RETURN_IF_ERROR(file->Finish());
  return options;
}

}  // namespace clew::transfer
