// An in-process API server reached in one of three ways: called directly, over HTTP, over HTTPS with a client certificate.
#pragma once

#include <kubeopera/crypto/pki.hpp>
#include <kubeopera/http/client.hpp>
#include <kubeopera/http/server.hpp>
#include <kubeopera/kube/client.hpp>
#include <kubeopera/kube/kubeconfig.hpp>
#include <kubeopera/testing/api_server.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace kubeopera::kube_test {

enum class path_kind { direct, http, https };

inline std::string name_of_path(path_kind k) {
  return k == path_kind::direct ? "direct" : k == path_kind::http ? "http" : "https";
}

template <class T>
asio::awaitable<void> fulfil(task<T> op, std::promise<result<T>>& out) {
  result<T> r = co_await std::move(op);
  out.set_value(std::move(r));
}

/// Two threads that run coroutines until the end of the test.
class runtime {
 public:
  runtime() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { io_.run(); });
  }
  ~runtime() {
    work_.reset();
    io_.stop();
    for (auto& t : threads_) t.join();
  }
  asio::any_io_executor executor() { return io_.get_executor(); }
  /// Runs op on the runtime and waits for its outcome.
  template <class T>
  result<T> wait(task<T> op) {
    std::promise<result<T>> out;
    auto future = out.get_future();
    spawn(executor(), fulfil<T>(std::move(op), out));
    return future.get();
  }

 private:
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  std::vector<std::thread> threads_;
};

/// True once cond() holds, false after 20 seconds.
template <class Condition>
bool eventually(Condition cond) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!cond()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

inline asio::awaitable<void> serve(http::server& s) { (void)co_await s.run(); }

/// The API server and its listener.
class cluster {
 public:
  cluster(runtime& rt, path_kind path, testing::api_server_options options = testing::api_server_options())
      : rt_(rt), path_(path), api(std::move(options)) {
    if (path == path_kind::direct) return;
    http::server_options listen;
    if (path == path_kind::https) {
      ca_ = *crypto::make_ca();
      auto identity = *crypto::issue_server(ca_, {"t1.host-ns.svc", "localhost"});
      auto tls = std::make_shared<http::server_tls>();
      tls->identity = http::tls_identity(identity.certificate, identity.private_key);
      tls->client_ca_pem = ca_.certificate;
      listen.tls = tls;
    }
    listen.drain_timeout = std::chrono::milliseconds(100);
    auto listening = http::server::listen(rt.executor(), std::move(listen), api.handler());
    server_ = std::move(*listening);
    serving_ = background::start(rt.executor(), serve(*server_));
  }
  ~cluster() {
    if (!server_) return;
    serving_.stop();
    (void)rt_.wait(serving_.join());
  }

  /// How to reach it as a member of system:masters.
  kube::cluster_access access() const {
    auto user = *crypto::issue_client(ca_, "admin", {"system:masters"});
    kube::cluster_access a;
    a.host = "t1.host-ns.svc";
    a.ca_pem = ca_.certificate;
    a.client_certificate_pem = user.certificate;
    a.client_key_pem = secret(user.private_key);
    return a;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  std::shared_ptr<kube::client> client(kube::client_options options = kube::client_options()) {
    if (path_ == path_kind::direct) return kube::make_client(api.transport(), std::move(options));
    if (path_ == path_kind::https) return *kube::make_client(rt_.executor(), access(), address(), std::move(options));
    options.bearer_token = "admin";
    auto transport = http::make_client(rt_.executor(), http::client_options("http://" + address()));
    return kube::make_client(*transport, std::move(options));
  }

 private:
  runtime& rt_;
  path_kind path_;
  crypto::key_pair ca_;

 public:
  testing::api_server api;

 private:
  std::unique_ptr<http::server> server_;
  background serving_;
};

}  // namespace kubeopera::kube_test
