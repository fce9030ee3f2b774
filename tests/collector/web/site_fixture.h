#ifndef CLEW_TESTS_COLLECTOR_WEB_SITE_FIXTURE_H_
#define CLEW_TESTS_COLLECTOR_WEB_SITE_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "collector/web/site.h"
#include "tests/collector/web/html_tokens.h"
#include "tests/collector/web/served_site.h"

// The site without its sockets, over a fake catalogue.

namespace clew::collector::web {

inline Site SiteOf(const StoreAndCatalogue& data) {
  return {{.host_names = {"clew.example"},
           .client_options = "--collector collector.example:7447 ",
           .store_limit_bytes = 1 << 30,
           .now_s = [] { return kNow_s; },
           .more = {},
           .hosts = data.hosts.get()},
          *data.store,
          data.catalogue};
}

inline Response Ask(Site& site, const std::string& target) {
  return site.Answer(
      ParseHead("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

class SiteTest : public testing::Test {
 protected:
  Response Get(const std::string& target) {
    Site site = SiteOf(data_);
    return Ask(site, target);
  }
  std::string Text(const std::string& target) {
    const Response response = Get(target);
    EXPECT_EQ(response.status, 200) << target;
    EXPECT_EQ(TokensOf(response.body).broken, "") << target;
    return TextOfHtml(response.body);
  }

  // Where the page's link of that meaning leads; empty: it has none.
  std::string LinkOf(const std::string& target, const std::string& rel) {
    for (const Tag& tag : TokensOf(Get(target).body).tags) {
      if (tag.name == "a" && !tag.attributes.empty() &&
          tag.attributes[0] == std::pair(std::string("rel"), rel)) {
        return tag.attributes.at(1).second;
      }
    }
    return "";
  }

  StoreAndCatalogue data_;
};

}  // namespace clew::collector::web

#endif  // CLEW_TESTS_COLLECTOR_WEB_SITE_FIXTURE_H_
