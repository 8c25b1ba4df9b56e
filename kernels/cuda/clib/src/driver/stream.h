// Streams and events. Work is queued, and runs when a call has to wait for some of it. A real
// driver may run it at any time between. Work that can run too early or too late there, for want of
// an event, does so here each time, by one of these orders:
//
//   lazy          what is waited for, and what that waits for by events; the rest stays queued
//   fifo          everything that was queued before, in that order: as if there were one stream
//   copies-first  the same, but copies and sets pass kernels where no event holds them
//   reverse       all other streams as far as events allow, the newest first, and then the stream
//                 that is waited for
#pragma once

#include <time.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "memory.h"
#include "module.h"
#include "settings.h"

namespace cuda {
namespace {

struct stream;

// A mark stands for a piece of work: is it done, when, and where is it queued. Events point to one.
struct mark {
  bool done = false;
  double milliseconds = 0;
  stream* on;  // valid until it is done
};

typedef std::shared_ptr<mark> markOf;

enum class kind { launch, call, copy, set8, set32, record, wait };

// A work is an element of a stream's queue.
struct work {
  kind what;
  address dst = 0, src = 0;
  uint64_t n = 0;           // bytes, or elements of a set
  uint32_t value = 0;       // of a set
  std::vector<char> bytes;  // what a copy from pageable memory copies; the parameters of a launch
  bool staged = false;      // a copy takes bytes, not src
  std::shared_ptr<function> kernel;
  uint32_t grid[3] = {}, threads = 0, shared = 0;
  code (*called)(void*) = nullptr;  // of a call, with its argument
  std::shared_ptr<void> with;

  markOf own;
  std::vector<markOf> after;  // what has to be done before
  uint64_t number = 0;        // in the order in which work came
};

// Flags of streams and events.
const uint32_t streamNonBlocking = 1, eventDisableTiming = 2;

struct stream {
  uint64_t number;
  bool blocking;  // waits for the default stream, which waits for it
  bool destroyed = false;
  std::deque<work> queue;
  markOf last;

  // held returns what the first of the queue still waits for, or null.
  mark* held() const {
    for (const markOf& m : queue.front().after) {
      if (!m->done) return m.get();
    }
    return nullptr;
  }
};

struct event {
  bool timed;
  markOf recorded;  // null: never
};

// Streams are the streams of a context, with their work.
struct streams {
  // most bounds the work of a stream: a run that never waits would fill the memory.
  static const size_t most = 1 << 16;

  order by;
  std::function<code(const work&)> run;  // runs one piece of work; an error ends all
  std::function<void(code)> lost;
  std::vector<std::unique_ptr<stream>> all;  // the first is the default stream
  uint64_t numbers = 0;

  streams(order o, std::function<code(const work&)> perform, std::function<void(code)> fail)
      : by(o), run(std::move(perform)), lost(std::move(fail)) {
    add(true);
  }

  stream* add(bool blocking) {
    all.emplace_back(new stream{++numbers, blocking, false, {}, nullptr});
    return all.back().get();
  }

  stream* main() { return all[0].get(); }

  // push queues w, and returns its mark.
  markOf push(stream* s, work w) {
    if (s->queue.size() >= most) finish(s->queue.front().own);
    if (s == main()) {
      for (auto& other : all) {
        if (other->blocking && other->last && !other->last->done) w.after.push_back(other->last);
      }
    } else if (s->blocking && main()->last && !main()->last->done) {
      w.after.push_back(main()->last);
    }
    w.number = ++numbers;
    w.own = std::make_shared<mark>();
    w.own->on = s;
    s->last = w.own;
    s->queue.push_back(std::move(w));
    return s->last;
  }

  // finish runs work until m is done; null is.
  void finish(markOf m) {
    while (m && !m->done) step(*m);
  }

  void finish(stream* s) { finish(s->last); }

  void finishAll() {
    for (size_t i = all.size(); i-- > 0;) finish(all[by == order::reverse ? i : all.size() - 1 - i]->last);
    drop();
  }

  // step runs the piece of work that comes next when somebody waits for m, which is not done.
  void step(const mark& m) {
    stream* s = choose(m);
    work w = std::move(s->queue.front());
    s->queue.pop_front();
    code c = run(w);
    w.own->milliseconds = now();
    w.own->done = true;
    if (c != ok) {
      clear();
      lost(c);
    }
  }

  // destroy lets the work of s end later, as the driver does.
  void destroy(stream* s) {
    s->destroyed = true;
    drop();
  }

  // clear drops all work.
  void clear() {
    for (auto& s : all) {
      for (work& w : s->queue) w.own->done = true;
      s->queue.clear();
    }
  }

  static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
  }

 private:
  // needed returns the stream whose first work m needs, by the events between.
  static stream* needed(const mark& m) {
    stream* s = m.on;
    while (mark* before = s->held()) s = before->on;
    return s;
  }

  static int rank(const work& w) {
    switch (w.what) {
      case kind::record:
      case kind::wait:
        return 0;
      case kind::launch:
      case kind::call:
        return 2;
      default:
        return 1;
    }
  }

  stream* choose(const mark& m) {
    stream* best = nullptr;
    switch (by) {
      case order::lazy:
        break;
      case order::fifo:
        // Work waits for older work alone, so that the oldest can run.
        for (auto& s : all) {
          if (!s->queue.empty() && (!best || s->queue.front().number < best->queue.front().number)) best = s.get();
        }
        break;
      case order::copiesFirst:
        for (auto& s : all) {
          if (s->queue.empty() || s->held()) continue;
          const work& w = s->queue.front();
          if (!best || std::make_pair(rank(w), w.number) <
                           std::make_pair(rank(best->queue.front()), best->queue.front().number)) {
            best = s.get();
          }
        }
        break;
      case order::reverse:
        for (auto& s : all) {
          if (s.get() != m.on && !s->queue.empty() && !s->held()) best = s.get();
        }
        break;
    }
    return best ? best : needed(m);
  }

  // drop forgets destroyed streams whose work is done.
  void drop() {
    for (size_t i = all.size(); i-- > 1;) {
      if (all[i]->destroyed && all[i]->queue.empty()) all.erase(all.begin() + (long)i);
    }
  }
};

}  // namespace
}  // namespace cuda
