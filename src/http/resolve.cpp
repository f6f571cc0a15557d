// getaddrinfo on a small pool; a caller that gives up leaves its lookup to end alone.
#include "src/http/resolve.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstring>
#include <mutex>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace kubeopera::inline v1::http {

namespace {

struct lookup {
  std::mutex mutex;
  bool done = false;
  int code = 0;
  std::vector<ip_address> addresses;
  notifier ended;
};

ip_address from_sockaddr(const sockaddr* from) {
  ip_address out;
  if (from->sa_family == AF_INET6) {
    out.v6 = true;
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(from)->sin6_addr, 16);
  } else {
    std::memcpy(out.bytes.data(), &reinterpret_cast<const sockaddr_in*>(from)->sin_addr, 4);
  }
  return out;
}

void look_up(const std::string& host, lookup& into) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_family = AF_UNSPEC;
  addrinfo* found = nullptr;
  int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  std::vector<ip_address> all;
  for (auto* a = found; code == 0 && a; a = a->ai_next) {
    if (a->ai_family == AF_INET || a->ai_family == AF_INET6) all.push_back(from_sockaddr(a->ai_addr));
  }
  if (found) ::freeaddrinfo(found);
  {
    std::lock_guard lock(into.mutex);
    into.code = code;
    into.addresses = std::move(all);
    into.done = true;
  }
  into.ended.notify();
}

asio::thread_pool& resolver_threads() {
  static asio::thread_pool pool(4);
  return pool;
}

}  // namespace

task<std::vector<ip_address>> resolve(std::string host) {
  if (auto literal = parse_ip(host)) co_return std::vector<ip_address>{*literal};
  auto work = std::make_shared<lookup>();
  asio::post(resolver_threads(), [host, work] { look_up(host, *work); });
  for (;;) {
    auto ticket = work->ended.ticket();
    {
      std::lock_guard lock(work->mutex);
      if (work->done) break;
    }
    KUBEOPERA_CO_CHECK(co_await work->ended.wait(ticket));
  }
  if (work->code != 0 || work->addresses.empty()) {
    const char* words = work->code != 0 ? ::gai_strerror(work->code) : "no address";
    co_return error(errc::unavailable, "DnsFailed", "the name " + host + " could not be resolved").with_detail(words);
  }
  co_return std::move(work->addresses);
}

}  // namespace kubeopera::inline v1::http
