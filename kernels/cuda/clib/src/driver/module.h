// Modules: the kernels that a PTX text has. Nothing is compiled, since a kernel runs as host code.
// Of the text only the frame is read: directives, names, parameters and shared memory. Instructions
// are for ptxas.
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../launch.h"
#include "codes.h"

namespace cuda {
namespace {

// A function is a kernel of a module.
struct function {
  std::string name;
  unsigned long paramBytes = 0;
  std::vector<unsigned long> sizes;  // of the parameters
  uint32_t mostThreads = 1024;       // of a block
  uint32_t sharedBytes = 0;
  int mostDynamic = 48 << 10;  // bytes of dynamic shared memory that a launch may ask for
  int ptxVersion = 0;          // 78 for 7.8
};

typedef std::map<std::string, std::shared_ptr<function>> functions;

// A token is a word or number, a text in quotes, or one other character.
struct token {
  std::string text;
  int line;
};

// A ptxReader reads a PTX text. Its errors read as ptxas's do.
struct ptxReader {
  std::vector<token> tokens;
  size_t at = 0;
  code failed = ok;
  std::string log;

  int version = 0;                              // 78 for 7.8
  std::map<std::string, uint32_t> arrays;       // bytes of each array in shared memory
  std::map<std::string, std::set<std::string>> bodies;  // the words of each kernel
  functions found;

  ptxReader(const char* text, int newest, int capability) {
    split(text);
    if (!failed) header(newest, capability);
    while (!failed && at < tokens.size()) statement();
    for (auto& f : found) {
      for (auto& array : arrays) {
        if (bodies[f.first].count(array.first)) f.second->sharedBytes += array.second;
      }
    }
  }

  void refuse(code with, const std::string& what) {
    if (failed) return;
    failed = with;
    int line = tokens.empty() ? 1 : tokens[std::min(at, tokens.size() - 1)].line;
    log = "ptxas application ptx input, line " + std::to_string(line) + "; fatal   : " + what;
  }

  void split(const char* s) {
    int line = 1;
    while (*s) {
      if (*s == '\n') line++;
      if (isspace((unsigned char)*s)) {
        s++;
      } else if (s[0] == '/' && s[1] == '/') {
        while (*s && *s != '\n') s++;
      } else if (s[0] == '/' && s[1] == '*') {
        for (s += 2; *s && !(s[0] == '*' && s[1] == '/'); s++) line += *s == '\n';
        if (*s) s += 2;
      } else if (*s == '"') {
        const char* end = strpbrk(s + 1, "\"\n");
        if (!end || *end != '"') return refuse(invalidPTX, "a text without its end");
        tokens.push_back({std::string(s, end + 1), line});
        s = end + 1;
      } else if (isWord(*s)) {
        const char* end = s;
        while (isWord(*end)) end++;
        tokens.push_back({std::string(s, end), line});
        s = end;
      } else if (isprint((unsigned char)*s)) {
        tokens.push_back({std::string(1, *s++), line});
      } else {
        tokens.push_back({"?", line});
        at = tokens.size() - 1;
        return refuse(invalidPTX, "Unexpected non-ASCII character encountered");
      }
    }
  }

  static bool isWord(char c) { return isalnum((unsigned char)c) || strchr("_.$%", c) ? c != 0 : false; }

  // next returns the next token and goes behind it; it returns "" at the end.
  std::string next() { return at < tokens.size() ? tokens[at++].text : ""; }
  bool is(const char* text) const { return at < tokens.size() && tokens[at].text == text; }

  void syntax() {
    refuse(invalidPTX, at < tokens.size() ? "Parsing error near '" + tokens[at].text + "': syntax error"
                                          : "Parsing error near end of file: syntax error");
  }

  void expect(const char* text) {
    if (!is(text)) return syntax();
    at++;
  }

  // header reads .version, .target and .address_size.
  void header(int newest, int capability) {
    int major = 0, minor = 0, target = 0;
    char rest = 0;
    if (!is(".version")) return refuse(invalidPTX, "Missing .version directive at start of file '<input>'");
    at++;
    if (at >= tokens.size() || sscanf(tokens[at].text.c_str(), "%d.%d%c", &major, &minor, &rest) != 2) return syntax();
    version = major * 10 + minor;
    if (version > newest) {
      return refuse(unsupportedPTX, "Unsupported .version " + tokens[at].text + "; current version is '" +
                                        std::to_string(newest / 10) + "." + std::to_string(newest % 10) + "'");
    }
    at++;
    expect(".target");
    if (failed) return;
    if (at >= tokens.size() || sscanf(tokens[at].text.c_str(), "sm_%d%c", &target, &rest) != 1) return syntax();
    if (target > capability) {
      return refuse(invalidPTX, "SM version specified by .target is higher than default SM version assumed");
    }
    at++;
    expect(".address_size");
    expect("64");
  }

  // statement reads what may stand outside functions.
  void statement() {
    static const std::set<std::string> single = {".extern", ".global", ".const", ".shared", ".pragma"};
    if (is(".visible") || is(".weak")) at++;
    if (is(".entry")) return entry();
    if (is(".func")) {
      while (at < tokens.size() && !is("{")) at++;
      std::set<std::string> ignored;
      return body(ignored);
    }
    if (is(".file")) {  // .file 1 "name", and nothing behind it
      at = std::min(at + 3, tokens.size());
      return;
    }
    if (at >= tokens.size() || !single.count(tokens[at].text)) return syntax();
    if (is(".shared")) return sharedArray();
    while (at < tokens.size() && !is(";")) at++;
    expect(";");
  }

  // sharedArray reads .shared .align 16 .b8 name[size];
  void sharedArray() {
    unsigned bits = 8, count = 1;
    at++;
    if (is(".align")) at += 2;
    if (at + 1 >= tokens.size() || sscanf(tokens[at].text.c_str(), ".%*[a-z]%u", &bits) != 1) return syntax();
    at++;
    std::string name = next();
    if (is("[")) {
      at++;
      if (sscanf(next().c_str(), "%u", &count) != 1) return syntax();
      expect("]");
    }
    expect(";");
    arrays[name] = bits / 8 * count;
  }

  void entry() {
    at++;
    auto f = std::make_shared<function>();
    f->name = next();
    f->ptxVersion = version;
    if (is("(")) {
      at++;
      while (!failed && !is(")")) parameter(*f);
      expect(")");
    }
    while (!failed && at < tokens.size() && !is("{")) {
      bool limit = is(".maxntid");
      at++;
      if (limit) f->mostThreads = product();
    }
    body(bodies[f->name]);
    if (!failed && !found.emplace(f->name, f).second) refuse(invalidPTX, "Duplicate definition of '" + f->name + "'");
  }

  // product reads numbers with commas, and returns their product.
  uint32_t product() {
    uint32_t n = 1, k;
    while (at < tokens.size() && sscanf(tokens[at].text.c_str(), "%u", &k) == 1) {
      n *= k;
      at++;
      if (is(",")) at++;
    }
    return n;
  }

  // parameter reads .param .u64 name, and a comma. It refuses arrays, which are structs that are
  // passed by value: no kernel of ours has one.
  void parameter(function& f) {
    unsigned bits = 0;
    expect(".param");
    if (failed || at >= tokens.size() || sscanf(tokens[at].text.c_str(), ".%*[a-z]%u", &bits) != 1) return syntax();
    at++;
    while (at < tokens.size() && tokens[at].text[0] == '.') at += is(".align") ? 2 : 1;
    at++;
    if (is(",")) {
      at++;
    } else if (!is(")")) {
      return syntax();
    }
    unsigned long size = bits / 8;
    if (size == 0) return syntax();
    f.sizes.push_back(size);
    f.paramBytes = (f.paramBytes + size - 1) / size * size + size;
  }

  // body reads what is in braces, and notes its words and its shared memory.
  void body(std::set<std::string>& into) {
    expect("{");
    for (int depth = 1; !failed && depth > 0;) {
      if (at >= tokens.size()) return syntax();
      if (is(".shared")) {
        sharedArray();
        continue;
      }
      depth += is("{");
      depth -= is("}");
      into.insert(next());
    }
  }
};

// compareWithHost returns how the parameters of a kernel of the PTX differ from its host code in
// this library; "" if they do not, or if there is none.
inline std::string compareWithHost(const function& f) {
  if (gnn_kernel_size(f.name.c_str()) < 0) return "";
  unsigned long offset, size;
  unsigned i = 0;
  for (; gnn_kernel_param(f.name.c_str(), i, &offset, &size) == GNN_OK; i++) {
    if (i >= f.sizes.size() || f.sizes[i] != size) break;
  }
  if (i == f.sizes.size() && gnn_kernel_param(f.name.c_str(), i, &offset, &size) != GNN_OK) return "";
  return "parameter " + std::to_string(i) + " of kernel " + f.name + " differs from the host's source";
}

}  // namespace
}  // namespace cuda
