// An API server with its controllers on a thread of its own, and waiting for a state with a deadline.
#pragma once

#include <kubeopera/json/read.hpp>
#include <kubeopera/json/write.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/testing/api_server.hpp>
#include <kubeopera/testing/simulator.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <thread>

namespace kubeopera::testing_rig {

/// Runs coroutines from a test's thread.
class loop {
 public:
  loop() : guard_(asio::make_work_guard(io)), thread_([this] { io.run(); }) {}
  ~loop() {
    guard_.reset();
    io.stop();
    thread_.join();
  }
  /// The task's result; fails the test after a minute.
  template <class T>
  result<T> wait(task<T> t) {
    auto promise = std::make_shared<std::promise<result<T>>>();
    auto future = promise->get_future();
    spawn(io.get_executor(), fulfil<T>(std::move(t), promise));
    if (future.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
      ADD_FAILURE() << "a task did not end";
      std::abort();
    }
    return future.get();
  }
  asio::io_context io;

 private:
  template <class T>
  static asio::awaitable<void> fulfil(task<T> t, std::shared_ptr<std::promise<result<T>>> promise) {
    auto r = co_await std::move(t);
    promise->set_value(std::move(r));
  }
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

/// A simulated cluster.
class rig {
 public:
  explicit rig(testing::simulator_options options = quick()) : api(options_of()) {
    client = kube::make_client(api.transport(testing::api_user("tester", {"system:masters"})));
    controllers = kube::make_client(api.transport(testing::api_user("system:kube-controller-manager", {"system:masters"})));
    sim = std::make_shared<testing::simulator>(l.io.get_executor(), controllers, options);
    api.set_log_source(sim->log_source());
    running = background::start(l.io.get_executor(), run(sim));
    EXPECT_TRUE(l.wait(sim->wait_started()));
  }
  ~rig() {
    running.stop();
    EXPECT_TRUE(l.wait(running.join()));
  }

  static testing::simulator_options quick() {
    testing::simulator_options o;
    o.flux = false;
    o.crash_after = std::chrono::milliseconds(20);
    o.pull_backoff = std::chrono::milliseconds(50);
    o.restart_backoff = std::chrono::milliseconds(50);
    return o;
  }
  static testing::api_server_options options_of() { return testing::api_server_options(); }

  kube::object create(const kube::resource_type& type, std::string_view text) {
    auto o = json::read_object(text).value();
    auto r = l.wait(client->create(type, o));
    EXPECT_TRUE(r) << (r ? "" : to_string(r.error()));
    return r ? *r : kube::object();
  }
  std::optional<kube::object> get(const kube::resource_type& type, std::string ns, std::string name) {
    auto key = kube::object_key{std::move(ns), std::move(name)};
    auto r = l.wait(client->get(type, key));
    if (!r) return std::nullopt;
    return *r;
  }
  std::vector<kube::object> list(const kube::resource_type& type, std::string ns) {
    auto r = l.wait(kube::list_all(*client, type, ns));
    return r ? r->items : std::vector<kube::object>();
  }
  void patch(const kube::resource_type& type, std::string ns, std::string name, std::string_view text) {
    auto key = kube::object_key{std::move(ns), std::move(name)};
    auto body = json::read(text).value();
    auto r = l.wait(client->patch(type, key, kube::patch_kind::merge, body));
    EXPECT_TRUE(r) << (r ? "" : to_string(r.error()));
  }
  void remove(const kube::resource_type& type, std::string ns, std::string name, std::string propagation = {}) {
    auto key = kube::object_key{std::move(ns), std::move(name)};
    kube::delete_options o;
    o.propagation = std::move(propagation);
    auto r = l.wait(client->remove(type, key, o));
    EXPECT_TRUE(r) << (r ? "" : to_string(r.error()));
  }
  /// Asks again until it holds; false after ten seconds.
  bool eventually(const std::function<bool()>& holds, std::chrono::seconds limit = std::chrono::seconds(10)) {
    auto until = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      auto paused = l.wait(sleep_for(std::chrono::milliseconds(2)));
      if (!paused) return false;
    }
    return true;
  }

  loop l;
  testing::api_server api;
  std::shared_ptr<kube::client> client, controllers;
  std::shared_ptr<testing::simulator> sim;
  background running;

 private:
  static asio::awaitable<void> run(std::shared_ptr<testing::simulator> sim) {
    auto ended = co_await sim->run();
    EXPECT_FALSE(ended);
  }
};

/// A Deployment of one container.
inline std::string deployment(std::string_view name, std::string_view image, int replicas, std::string_view extra = {}) {
  std::string text =
      R"({"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":")" + std::string(name) +
      R"(","namespace":"default"},"spec":{"replicas":)" + std::to_string(replicas) + R"(,"selector":{"matchLabels":{"app":")" +
      std::string(name) + R"("}},"template":{"metadata":{"labels":{"app":")" + std::string(name) +
      R"("}},"spec":{"containers":[{"name":"c","image":")" + std::string(image) + "\"" + std::string(extra) + "}]}}}}";
  return text;
}

}  // namespace kubeopera::testing_rig
