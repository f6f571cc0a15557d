// The object store and its refs, with git as the other party.
#include "src/gitops/files.hpp"
#include "src/gitops/pack.hpp"
#include "src/gitops/refs.hpp"
#include "src/gitops/tree.hpp"
#include "tests/unit/gitops/git_tool.hpp"

#include <kubeopera/gitops/store.hpp>

#include <gtest/gtest.h>

#include <algorithm>

using namespace kubeopera;
using namespace kubeopera::gitops;
using namespace git_tool;
namespace gd = kubeopera::gitops::detail;

namespace {

// A repository with two commits, and its files as git packs them.
struct sample {
  temp_folder dir;
  std::string work = dir / "w", first, second;
  sample() {
    git(".", "init -q -b main '" + work + "'");
    write_file(work + "/clusters/a/x/app/one.yaml", "one\n");
    write_file(work + "/clusters/a/x/app/two.yaml", std::string(50000, 'z'));
    git(work, "add -A");
    git(work, "commit -qm first");
    first = git(work, "rev-parse HEAD");
    write_file(work + "/clusters/a/x/app/one.yaml", "changed\n");
    git(work, "commit -qam second");
    second = git(work, "rev-parse HEAD");
  }
  std::string pack(const std::string& revisions, const std::string& flags = "") {
    git(work, "rev-parse HEAD");
    shell("printf '" + revisions + "\\n' | git -C '" + work + "' pack-objects --revs --stdout " + flags + " > '" + (dir / "p") +
          "' 2>/dev/null");
    return read_file(dir / "p");
  }
};

std::size_t packs_in(const std::string& repository) {
  std::size_t n = 0;
  for (const auto& e : std::filesystem::directory_iterator(repository + "/objects/pack")) n += e.path().extension() == ".pack";
  return n;
}

}  // namespace

TEST(store, makes_a_repository_that_git_accepts) {
  temp_folder dir;
  auto store = open_store(dir / "new/s.git");
  ASSERT_TRUE(store) << to_string(store.error());
  EXPECT_EQ(git(dir / "new/s.git", "rev-parse --is-bare-repository"), "true");
  EXPECT_EQ(git(dir / "new/s.git", "symbolic-ref HEAD"), "refs/heads/main");
  EXPECT_TRUE(open_store(dir / "new/s.git"));
  write_file(dir / "other/file", "x");
  EXPECT_EQ(open_store(dir / "other").error().code(), errc::failed_precondition);
}

TEST(store, reads_what_git_packed) {
  sample s;
  auto store = open_store(s.dir / "s.git").value();
  ASSERT_TRUE(store->add_pack(s.pack("main")));
  EXPECT_TRUE(store->contains(s.second));
  EXPECT_FALSE(store->contains(std::string(40, 'a')));
  EXPECT_FALSE(store->contains("nonsense"));
  auto commit = store->read_commit(s.second);
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->message, "second\n");
  EXPECT_EQ(commit->parents, std::vector<std::string>{s.first});
  EXPECT_EQ(commit->author_email, "t@t");
  EXPECT_EQ(store->read_file(s.second, "clusters/a/x/app/one.yaml").value(), "changed\n");
  EXPECT_EQ(store->read_file(s.first, "clusters/a/x/app/one.yaml").value(), "one\n");
  EXPECT_EQ(store->id_at(s.second, "clusters/a").value(), git(s.work, "rev-parse HEAD:clusters/a"));
  auto files = store->read_files(s.second, "clusters/a");
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].first, "x/app/one.yaml");
  auto tree = store->list_tree(s.second, "clusters/a/x/app");
  ASSERT_TRUE(tree);
  EXPECT_EQ((*tree)[1].name, "two.yaml");
  EXPECT_EQ((*tree)[1].mode, 0100644u);
  EXPECT_TRUE(store->is_ancestor(s.first, s.second).value());
  EXPECT_TRUE(store->is_ancestor(s.first, s.first).value());
  EXPECT_FALSE(store->is_ancestor(s.second, s.first).value());
  EXPECT_EQ(store->read_file(s.second, "clusters/none").error().code(), errc::not_found);
  EXPECT_EQ(store->read_file(s.second, "clusters/a/x/app/one.yaml/deeper").error().code(), errc::not_found);
  EXPECT_EQ(store->read_file(s.second, "clusters").error().code(), errc::not_found);
  EXPECT_EQ(store->read_commit(store->id_at(s.second, "clusters").value()).error().code(), errc::data_loss);
  EXPECT_EQ(store->read_commit("x").error().code(), errc::invalid_argument);
}

TEST(store, completes_thin_packs) {
  sample s;
  auto store = open_store(s.dir / "s.git").value();
  ASSERT_TRUE(store->add_pack(s.pack(s.first)));
  auto thin = s.pack("main\\n^" + s.first, "--thin --delta-base-offset");
  auto writer = store->begin_pack();
  ASSERT_TRUE(writer);
  for (std::size_t i = 0; i < thin.size(); i += 11) ASSERT_TRUE((*writer)->append(std::string_view(thin).substr(i, 11)));
  ASSERT_TRUE((*writer)->commit());
  EXPECT_EQ(store->read_file(s.second, "clusters/a/x/app/one.yaml").value(), "changed\n");
  EXPECT_EQ(fsck(s.dir / "s.git"), "");
}

// What the head promises is made room for before the first object is read.
TEST(store, a_pack_that_promises_too_many_objects_is_refused_at_its_head) {
  sample s;
  auto store = open_store(s.dir / "s.git").value();
  std::string head = "PACK" + std::string("\0\0\0\2", 4) + "\xff\xff\xff\xff";
  for (std::size_t piece : {12u, 5u, 1u}) {
    auto writer = store->begin_pack().value();
    result<void> answer;
    std::size_t at = 0;
    for (; answer && at < head.size(); at += piece) answer = writer->append(std::string_view(head).substr(at, piece));
    ASSERT_FALSE(answer) << "in pieces of " << piece;
    EXPECT_EQ(answer.error().code(), errc::too_large);
    EXPECT_GE(at, head.size()) << "not before all of the head is there";
  }
  EXPECT_EQ(store->add_pack(head).error().reason(), "PackTooLarge");
}

TEST(store, damaged_packs_leave_nothing) {
  sample s;
  auto store = open_store(s.dir / "s.git").value();
  auto pack = s.pack("main");
  auto flipped = pack;
  flipped[flipped.size() / 2] ^= 1;
  EXPECT_FALSE(store->add_pack(flipped));
  EXPECT_FALSE(store->add_pack(pack.substr(0, pack.size() / 2)));
  EXPECT_FALSE(store->add_pack("PACK"));
  EXPECT_FALSE(store->add_indexed_pack(pack, "too short"));
  EXPECT_TRUE(std::filesystem::is_empty(s.dir / "s.git/objects/pack"));
}

TEST(store, unfit_modes_are_refused) {
  sample s;
  std::filesystem::create_symlink("/etc/passwd", s.work + "/clusters/a/link");
  git(s.work, "add -A && git -C '" + s.work + "' commit -qm link");
  auto with_link = git(s.work, "rev-parse HEAD");
  auto store = open_store(s.dir / "s.git").value();
  ASSERT_TRUE(store->add_pack(s.pack("main")));
  EXPECT_EQ(store->read_files(with_link, "clusters").error().code(), errc::failed_precondition);
  EXPECT_EQ(store->read_file(with_link, "clusters/a/link").error().code(), errc::failed_precondition);
  EXPECT_TRUE(store->read_files(with_link, "clusters/a/x"));
  git(s.work, "update-index --add --cacheinfo 160000," + s.first + ",clusters/a/sub && git -C '" + s.work + "' commit -qm sub");
  auto with_module = git(s.work, "rev-parse HEAD");
  ASSERT_TRUE(store->add_pack(s.pack("main")));
  EXPECT_EQ(store->read_files(with_module, "clusters/a").error().code(), errc::failed_precondition);
}

TEST(store, own_packs_need_three_syncs) {
  temp_folder dir;
  auto store = open_store(dir / "s.git").value();
  gd::pack_builder pack;
  auto id = pack.add(gd::object_type::blob, "hello");
  auto done = pack.finish();
  auto before = gd::sync_count().load();
  ASSERT_TRUE(store->add_indexed_pack(done.pack, done.index));
  EXPECT_EQ(gd::sync_count() - before, 3u);
  EXPECT_EQ(store->read_object(id.hex(), "blob").value(), "hello");
  EXPECT_EQ(store->read_object(id.hex(), "tree").error().code(), errc::data_loss);
  EXPECT_EQ(git(dir / "s.git", "cat-file blob " + id.hex()), "hello");
}

TEST(store, compact_keeps_every_object_and_open_readers) {
  sample s;
  auto repository = s.dir / "s.git";
  auto store = open_store(repository).value();
  auto reader = open_store(repository).value();  // another view, as another process has it
  ASSERT_TRUE(store->add_pack(s.pack("main")));  // has deltas or not: must survive either way
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) {
    gd::pack_builder pack;
    ids.push_back(pack.add(gd::object_type::blob, "object " + std::to_string(i)).hex());
    pack.add(gd::object_type::blob, "in every pack");
    auto done = pack.finish();
    ASSERT_TRUE(store->add_indexed_pack(done.pack, done.index));
    if (i == 20) {
      EXPECT_TRUE(reader->contains(ids[3]));
    }
  }
  ASSERT_TRUE(store->compact(100));
  EXPECT_EQ(packs_in(repository), 41u);
  ASSERT_TRUE(store->compact(10));
  EXPECT_GE(packs_in(repository), 41u);  // slow readers still need the old ones
  ASSERT_TRUE(store->compact(10, duration::zero()));
  EXPECT_LE(packs_in(repository), 3u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(store->read_object(ids[static_cast<std::size_t>(i)], "blob").value(), "object " + std::to_string(i));
    auto other = reader->read_object(ids[static_cast<std::size_t>(i)], "blob");
    ASSERT_TRUE(other) << to_string(other.error());
  }
  EXPECT_TRUE(reader->read_commit(s.second));
  EXPECT_EQ(fsck(repository), "");
}

TEST(store, leftovers_of_a_crash_are_swept_after_an_hour) {
  temp_folder dir;
  ASSERT_TRUE(open_store(dir / "s.git"));
  for (std::string name : {"old", "new"}) write_file(dir / ("s.git/objects/pack/tmp_own_" + name + ".pack"), "half");
  write_file(dir / "s.git/objects/pack/tmp_pack_1/pack_x", "half");
  for (auto name : {"tmp_own_old.pack", "tmp_pack_1"})
    std::filesystem::last_write_time(dir / ("s.git/objects/pack/" + std::string(name)),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(open_store(dir / "s.git"));
  EXPECT_EQ(shell("ls '" + (dir / "s.git/objects/pack") + "'").text, "tmp_own_new.pack\n");
}

TEST(store, bookmarks_are_hints) {
  sample s;
  auto store = open_store(s.dir / "s.git").value();
  EXPECT_EQ(store->bookmark("main").value(), std::nullopt);
  ASSERT_TRUE(store->set_bookmark("main", s.second));
  EXPECT_EQ(store->bookmark("main").value(), std::nullopt);  // the object is not there
  ASSERT_TRUE(store->add_pack(s.pack("main")));
  EXPECT_EQ(store->bookmark("main").value(), s.second);
  write_file(s.dir / "s.git/refs/kubeopera/seen/main", "");  // torn by a crash
  EXPECT_EQ(store->bookmark("main").value(), std::nullopt);
  EXPECT_FALSE(store->bookmark("-x"));
}

TEST(refs, follow_gits_rules) {
  sample s;
  auto repository = s.work + "/.git";
  auto first = gd::oid::parse(s.first), second = gd::oid::parse(s.second);
  auto read = [&](const std::string& name) { return gd::read_ref(repository, name).value(); };
  EXPECT_EQ(read("refs/heads/main"), second);
  EXPECT_EQ(read("refs/heads/none"), std::nullopt);
  git(s.work, "branch deep/er " + s.first);
  git(s.work, "pack-refs --all");
  EXPECT_FALSE(std::filesystem::exists(repository + "/refs/heads/main"));
  EXPECT_EQ(read("refs/heads/main"), second);
  EXPECT_EQ(read("refs/heads/deep/er"), first);
  // Compare and swap from a packed value, then from a loose one.
  EXPECT_EQ(gd::swap_ref(repository, "refs/heads/main", first, *first).error().code(), errc::conflict);
  ASSERT_TRUE(gd::swap_ref(repository, "refs/heads/main", second, *first));
  EXPECT_EQ(git(s.work, "rev-parse refs/heads/main"), s.first);
  ASSERT_TRUE(gd::swap_ref(repository, "refs/heads/new/one", std::nullopt, *second));
  EXPECT_EQ(git(s.work, "rev-parse refs/heads/new/one"), s.second);
  EXPECT_EQ(gd::swap_ref(repository, "refs/heads/new/one", std::nullopt, *second).error().code(), errc::conflict);
  // Somebody holds the lock.
  write_file(repository + "/refs/heads/main.lock", "");
  auto locked = gd::swap_ref(repository, "refs/heads/main", first, *second);
  EXPECT_EQ(locked.error().reason(), "RefLocked");
  EXPECT_TRUE(std::filesystem::exists(repository + "/refs/heads/main.lock"));
  std::filesystem::remove(repository + "/refs/heads/main.lock");
  EXPECT_TRUE(gd::swap_ref(repository, "refs/heads/main", first, *second));
  // Somebody held it and died.
  write_file(repository + "/refs/heads/main.lock", "");
  std::filesystem::last_write_time(repository + "/refs/heads/main.lock",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  EXPECT_TRUE(gd::swap_ref(repository, "refs/heads/main", second, *first));
  EXPECT_TRUE(gd::swap_ref(repository, "refs/heads/main", first, *second));
  EXPECT_FALSE(std::filesystem::exists(repository + "/refs/heads/main.lock"));
  write_file(repository + "/refs/heads/sym", "ref: refs/heads/main\n");
  EXPECT_EQ(gd::read_ref(repository, "refs/heads/sym").error().code(), errc::unsupported);
  write_file(repository + "/refs/heads/torn", "1234\n");
  EXPECT_EQ(gd::read_ref(repository, "refs/heads/torn").error().code(), errc::data_loss);
}
