// The API server that the suite is put to: the in-process one with its controllers, or the one of a kubeconfig.
// KUBEOPERA_TEST_KUBECONFIG names the file of an administrator, KUBEOPERA_TEST_ETCD the URL of the etcd behind the server.
#pragma once

#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/kubeconfig.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kubeopera::conformance {

/// Threads that run coroutines for the tests.
class runtime {
 public:
  explicit runtime(int threads = 2) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~runtime() {
    work_.reset();
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  asio::any_io_executor executor() { return io_.get_executor(); }
  /// The task's result; the program ends where there is none within two minutes.
  template <class T>
  result<T> wait(task<T> op) {
    auto out = std::make_shared<std::promise<result<T>>>();
    auto future = out->get_future();
    spawn(executor(), fulfil<T>(std::move(op), out));
    if (future.wait_for(std::chrono::minutes(2)) != std::future_status::ready) {
      ADD_FAILURE() << "a task did not end";
      std::abort();
    }
    return future.get();
  }

 private:
  template <class T>
  static asio::awaitable<void> fulfil(task<T> op, std::shared_ptr<std::promise<result<T>>> out) {
    auto r = co_await std::move(op);
    out->set_value(std::move(r));
  }
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<std::thread> threads_;
};

class backend {
 public:
  virtual ~backend() = default;
  /// "in-process" or "real".
  virtual std::string kind() const = 0;
  /// How to reach it as a member of system:masters; for other processes too.
  virtual std::string kubeconfig() const = 0;
  /// Forgets the history up to now. False where the backend has no way to do it.
  virtual bool compact() = 0;
};

/// The backend that the environment asks for, made at the first call. It lasts until close_backend().
backend& the_backend();
runtime& the_runtime();
void close_backend();

/// What a kubeconfig of a server on any address says. Errors: those of kube::read_kubeconfig.
result<kube::cluster_access> access_of(const std::string& kubeconfig);

}  // namespace kubeopera::conformance
