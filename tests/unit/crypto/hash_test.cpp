// Digests against the vectors of their standards; encodings accept exactly one text for each byte string.
#include <kubeopera/crypto/hash.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using namespace kubeopera::crypto;
using kubeopera::secret;

TEST(hash, digests_match_the_standards_vectors) {
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(hash, pieces_give_the_same_digest_and_the_hasher_starts_anew) {
  for (auto algorithm : {hash_algorithm::sha1, hash_algorithm::sha256}) {
    hasher h(algorithm);
    h.update("a");
    h.update("");
    h.update("bc");
    auto first = h.finish();
    h.update("abc");
    EXPECT_EQ(h.finish(), first);
    EXPECT_EQ(first, algorithm == hash_algorithm::sha1 ? bytes(sha1("abc")) : bytes(sha256("abc")));
  }
}

TEST(hmac, matches_rfc_4231) {
  EXPECT_EQ(to_hex(bytes(hmac_sha256(secret(std::string(20, '\x0b'))).sign("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(to_hex(bytes(hmac_sha256(secret("Jefe")).sign("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      to_hex(bytes(hmac_sha256(secret(std::string(131, '\xaa'))).sign("Test Using Larger Than Block-Size Key - Hash Key First"))),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(hmac, an_empty_key_is_a_key_and_not_the_last_one) {
  hmac_sha256 other(secret("other"));
  EXPECT_EQ(to_hex(bytes(hmac_sha256(secret()).sign(""))), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(hmac, verify_refuses_another_mac_and_a_shortened_one) {
  hmac_sha256 mac(secret("k"));
  auto right = std::string(bytes(mac.sign("data")));
  EXPECT_TRUE(mac.verify("data", right));
  EXPECT_FALSE(mac.verify("datA", right));
  EXPECT_FALSE(mac.verify("data", right.substr(0, 31)));
  EXPECT_FALSE(mac.verify("data", ""));
}

TEST(hmac, threads_may_sign_at_once) {
  hmac_sha256 mac(secret("shared"));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        auto text = std::to_string(i * 4 + t);
        wrong[static_cast<std::size_t>(t)] += !mac.verify(text, bytes(hmac_sha256(secret("shared")).sign(text)));
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(encodings, rfc_4648_vectors_round_trip) {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (auto [plain, coded] : vectors) {
    EXPECT_EQ(base64_encode(plain), coded);
    EXPECT_EQ(base64_decode(coded).value(), plain);
    std::string unpadded(coded);
    unpadded.erase(unpadded.find_last_not_of('=') + 1);
    EXPECT_EQ(base64url_encode(plain), unpadded);
    EXPECT_EQ(base64url_decode(unpadded).value(), plain);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(base64_decode(base64_encode(all)).value(), all);
  EXPECT_EQ(base64url_decode(base64url_encode(all)).value(), all);
  EXPECT_EQ(from_hex(to_hex(all)).value(), all);
}

TEST(encodings, only_the_canonical_text_is_accepted) {
  for (const char* text :
       {"Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "=", "====", "A===", "Zg==Zg==", "-_-_", "Zm9v===="}) {
    auto r = base64_decode(text);
    ASSERT_FALSE(r) << text;
    EXPECT_EQ(r.error().reason(), "BadBase64");
  }
  for (const char* text : {"Zg==", "Zh", "Zm9", "A", "+/+/", "Zm9v ", "Zm.v"}) EXPECT_FALSE(base64url_decode(text)) << text;
  for (const char* text : {"0", "0g", "0x00", " 00"}) EXPECT_FALSE(from_hex(text)) << text;
  EXPECT_EQ(from_hex("00fFAb").value(), std::string("\x00\xff\xab", 3));
}

TEST(tokens, are_of_the_length_asked_for_and_differ) {
  EXPECT_EQ(random_token().size(), 43u);
  EXPECT_EQ(random_token(16).size(), 22u);
  EXPECT_NE(random_token(), random_token());
}

TEST(secrets, weak_ones_are_named_and_refused) {
  EXPECT_TRUE(check_secret_strength(secret("Tq7wq0kqX2mJ3s9dL5vB8nC1zR4yH6uE"), "KEY"));
  for (std::string weak : {"", "short", "0123456789012345678901234567890", "abababababababababababababababababab",
                           "please-changeme-please-1234567890ab", "Your-Secret-Key-Goes-Here-0123456789"}) {
    auto r = check_secret_strength(secret(weak), "KEY");
    ASSERT_FALSE(r) << weak;
    EXPECT_EQ(r.error().reason(), "WeakSecret");
    EXPECT_EQ(r.error().message().substr(0, 3), "KEY");
  }
  EXPECT_FALSE(check_secret_strength(secret(std::string(64, 'a')), "KEY"));
}

}  // namespace
