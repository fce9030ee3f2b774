// What a browser, or anybody, sends to the web page; and the document of
// backtraces that a stranger's bundle led to. The first byte says which.
// Every request has an answer that is a page, a figure or a document, and no
// byte of the request becomes an element of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/web/backtraces.h"
#include "collector/web/html.h"
#include "collector/web/http.h"
#include "collector/web/site.h"
#include "common/check.h"
#include "tests/collector/web/html_tokens.h"
#include "tests/collector/web/served_site.h"

using namespace clew::collector::web;  // NOLINT

namespace {

struct World {
  World() {
    FillWithHostileNames(data.catalogue);
    data.AddStored();
  }
  StoreAndCatalogue data;
  Site site{{.host_names = {"clew.example"},
             .client_options = "--collector collector.example:7447 ",
             .store_limit_bytes = 1,
             .now_s = [] { return kNow_s; },
             .more = {}},
            *data.store,
            data.catalogue};
};

void CheckRequest(const Request& request) {
  const Target& target = request.target;
  for (const char c : target.path) {
    CLEW_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f,
               "path {:?} has a control character", target.path);
  }
  std::string again = "/" + PercentEncode(target.path.substr(1)) + "?";
  for (const auto& [name, value] : target.query) {
    again += PercentEncode(name) + "=" + PercentEncode(value) + "&";
  }
  const auto back = ParseTarget(again);
  CLEW_CHECK(back && back->path == target.path && back->query == target.query,
             "{:?} does not survive the round trip as {:?}", target.path,
             again);
}

void FuzzRequest(std::string_view head) {
  static World world;
  const ParsedHead parsed = ParseHead(head);
  if (parsed.request) {
    CheckRequest(*parsed.request);
  }
  const Response response = world.site.Answer(parsed);
  CLEW_CHECK(
      ReasonOf(response.status).starts_with(std::to_string(response.status)),
      "status {}", response.status);
  if (response.content_type.starts_with("text/html")) {
    const Tokens tokens = TokensOf(response.body);
    CLEW_CHECK(tokens.broken.empty(), "{}", tokens.broken);
    for (const Tag& tag : tokens.tags) {
      CLEW_CHECK(tag.name != "script" && tag.name != "img", "<{}>", tag.name);
    }
  }
}

void FuzzBacktraces(std::string_view document) {
  CLEW_CHECK(ParseRaces(document).size() <= kRacesMax, "too many races");
  for (const WaitSeen& wait : ParseWaits(document)) {
    CLEW_CHECK(wait.holds.size() <= kHoldsMax, "{} locks", wait.holds.size());
  }
  const Backtraces backtraces = ParseBacktraces(document);
  CLEW_CHECK(backtraces.threads.size() <= kThreadsMax, "{} threads",
             backtraces.threads.size());
  for (const ThreadTrace& thread : backtraces.threads) {
    CLEW_CHECK(thread.frames.size() <= kFramesMax, "{} frames",
               thread.frames.size());
    for (const clew::collector::web::Frame& frame : thread.frames) {
      CLEW_CHECK(EscapeHtml(frame.function).find('<') == std::string::npos,
                 "{:?}", frame.function);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  if (data[0] == 'b') {
    FuzzBacktraces(rest);
  } else {
    FuzzRequest(rest);
  }
  return 0;
}
