// The pure parts of the app-controller: what a change of a Kustomization means for an app.
#include "server/services/app_controller/step.hpp"

#include <kubeopera/json/read.hpp>

#include <gtest/gtest.h>

namespace kubeopera::inline v1::app_controller {
namespace {

kube::object parse(const char* text) { return *json::read_object(text); }

const char* const ready = R"({"metadata":{"name":"web","generation":3,"annotations":{"kubeopera.io/resource":"a/web"}},
  "status":{"lastAppliedRevision":"main@sha1:1","conditions":[{"type":"Ready","status":"True"}]}})";

TEST(undoes_delivery, not_by_the_steps_from_one_revision_to_the_next) {
  auto before = parse(ready), now = before;
  EXPECT_FALSE(undoes_delivery(before, now));
  now["status"] = parse(R"({"lastAppliedRevision":"main@sha1:1","conditions":[{"type":"Ready","status":"Unknown"},
    {"type":"Reconciling","status":"True"}]})");
  EXPECT_FALSE(undoes_delivery(before, now));
  before = now;
  now["status"] = parse(R"({"lastAppliedRevision":"main@sha1:2","conditions":[{"type":"Ready","status":"True"}]})");
  EXPECT_FALSE(undoes_delivery(before, now));
}

TEST(undoes_delivery, by_a_failure_a_change_of_it_or_its_end) {
  auto before = parse(ready);
  auto failed = before;
  failed["status"] = parse(R"({"conditions":[{"type":"Ready","status":"False"}]})");
  EXPECT_TRUE(undoes_delivery(before, failed));
  auto changed = before;  // suspended, say
  changed["metadata"].as_object()["generation"] = 4;
  EXPECT_TRUE(undoes_delivery(before, changed));
  auto going = before;
  going["metadata"].as_object()["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  EXPECT_TRUE(undoes_delivery(before, going));
  auto moved = before;
  moved["metadata"].as_object()["annotations"] = parse(R"({"kubeopera.io/resource":"a/other"})");
  EXPECT_TRUE(undoes_delivery(before, moved));
}

TEST(is_delivered, only_what_the_present_generation_says) {
  auto app = parse(R"({"metadata":{"generation":2},"status":{"phase":"Delivered","observedGeneration":2}})");
  EXPECT_TRUE(is_delivered(app));
  app["metadata"].as_object()["generation"] = 3;
  EXPECT_FALSE(is_delivered(app));
  EXPECT_FALSE(is_delivered(parse(R"({"metadata":{"generation":2},"status":{"phase":"Delivering","observedGeneration":2}})")));
  EXPECT_FALSE(is_delivered(parse(R"({"metadata":{"generation":1}})")));
  EXPECT_FALSE(is_delivered(
      parse(R"({"metadata":{"generation":2,"deletionTimestamp":"x"},"status":{"phase":"Delivered","observedGeneration":2}})")));
}

}  // namespace
}  // namespace kubeopera::inline v1::app_controller
