// What the kube tests share: a clock that jumps, a transport that answers from a script, bodies that break where told.
#pragma once

#include <kubeopera/core/clock.hpp>
#include <kubeopera/http/transport.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/client.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kubeopera::kube_test {

/// A clock whose sleep() moves the time at once and remembers how far.
class jumping_clock final : public clock {
 public:
  system_time now() const override {
    std::lock_guard lock(mutex_);
    return system_time(std::chrono::duration_cast<system_time::duration>(elapsed_));
  }
  steady_time steady() const override {
    std::lock_guard lock(mutex_);
    return steady_time(elapsed_);
  }
  task<void> sleep(duration time) override {
    advance(time);
    {
      std::lock_guard lock(mutex_);
      slept_.push_back(time);
    }
    co_return co_await sleep_for(duration::zero());
  }
  void advance(duration time) {
    std::lock_guard lock(mutex_);
    elapsed_ += time;
  }
  std::vector<duration> slept() const {
    std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  mutable std::mutex mutex_;
  duration elapsed_ = std::chrono::hours(24 * 365 * 50);
  std::vector<duration> slept_;
};

/// Pieces in order; an error piece ends the stream; held open at the end where hold is set.
class scripted_body final : public http::body_source {
 public:
  using piece = std::variant<std::string, error>;
  explicit scripted_body(std::vector<piece> pieces, bool hold = false) : pieces_(pieces.begin(), pieces.end()), hold_(hold) {}
  task<std::string> next() override {
    if (pieces_.empty()) {
      if (hold_) {
        auto r = co_await sleep_for(std::chrono::hours(1));
        if (!r) co_return r.error();
      }
      co_return std::string();
    }
    auto p = std::move(pieces_.front());
    pieces_.pop_front();
    if (auto* e = std::get_if<error>(&p)) co_return *e;
    co_return std::get<std::string>(p);
  }

 private:
  std::deque<piece> pieces_;
  bool hold_;
};

/// What was sent, as far as tests look at it.
struct sent {
  std::string method, target, body;
  http::fields headers;
  bool stream = false;
};

class scripted_transport final : public http::transport {
 public:
  using answer = std::function<result<http::response>(const sent&)>;
  task<http::response> send(http::request req, bool want_stream) override {
    answer a;
    sent s{req.method, req.target, req.body, req.headers, want_stream};
    {
      std::lock_guard lock(mutex_);
      sent_.push_back(s);
      if (script_.empty()) co_return error(errc::internal, "ScriptEnded", "no answer for " + req.method + " " + req.target);
      a = script_.front();
      script_.pop_front();
    }
    co_return a(s);
  }
  scripted_transport& then(answer a) {
    script_.push_back(std::move(a));
    return *this;
  }
  scripted_transport& then(int status, std::string body, http::fields headers = {}) {
    return then([=](const sent&) {
      http::response r(status, "application/json", body);
      for (const auto& [k, v] : headers) r.headers.add(k, v);
      return result<http::response>(std::move(r));
    });
  }
  scripted_transport& then_stream(std::vector<scripted_body::piece> pieces, bool hold = false) {
    return then([=](const sent&) {
      http::response r(200);
      r.stream = std::make_unique<scripted_body>(pieces, hold);
      return result<http::response>(std::move(r));
    });
  }
  std::vector<sent> all() const {
    std::lock_guard lock(mutex_);
    return sent_;
  }
  sent last() const { return all().back(); }

 private:
  mutable std::mutex mutex_;
  std::deque<answer> script_;
  std::vector<sent> sent_;
};

template <class T>
asio::awaitable<void> store(task<T> op, std::optional<result<T>>& out) {
  result<T> r = co_await std::move(op);
  out.emplace(std::move(r));
}

/// Runs one task to its end.
template <class T>
result<T> run(task<T> op) {
  asio::io_context io;
  std::optional<result<T>> out;
  spawn(io.get_executor(), store<T>(std::move(op), out));
  io.run();
  return std::move(*out);
}

inline void run_body(asio::awaitable<void> body) {
  asio::io_context io;
  spawn(io.get_executor(), std::move(body));
  io.run();
}

/// A ConfigMap for tests.
inline kube::object config_map(const std::string& name, const std::string& version, const std::string& value = "1",
                               const std::string& uid = "") {
  auto o = kube::make_object(kube::types::config_maps(), {"ns", name});
  o["metadata"].as_object()["resourceVersion"] = version;
  o["metadata"].as_object()["uid"] = uid.empty() ? "uid-" + name : uid;
  o["data"] = {{"k", value}};
  return o;
}

}  // namespace kubeopera::kube_test
