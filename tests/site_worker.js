// A Worker for pages that are opened as files, where browsers allow none: the search of the site needs it. The script runs in
// a hidden frame, whose postMessage and importScripts are those of a worker.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame.contentWindow;
      this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      this.loaded = this.load([url]);
      this.frame.importScripts = (...urls) => this.load(urls);
    }
    async load(urls) {
      for (const url of urls)
        await new Promise((resolve, reject) => {
          const script = this.frame.document.createElement("script");
          Object.assign(script, {src: new URL(url, document.baseURI), onload: resolve, onerror: reject});
          this.frame.document.body.append(script);
        });
    }
    async postMessage(data) {
      await this.loaded;
      this.frame.dispatchEvent(new this.frame.MessageEvent("message", {data}));
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
