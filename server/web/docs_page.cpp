// The /docs page: one HTML file without outside resources.
#include "server/web/router.hpp"

namespace kubeopera::inline v1::web {
namespace {

constexpr const char* head = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>)html";

constexpr const char* rest = R"html(</title>
<style>
:root{color-scheme:light dark;--line:#8884;--soft:#8881}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}details{border:1px solid var(--line);border-radius:6px;margin:.4rem 0;padding:.2rem .7rem}
summary{cursor:pointer;display:flex;gap:.7rem;align-items:baseline;list-style:none}
.m{font:700 12px ui-monospace,monospace;min-width:4.2rem}.p{font-family:ui-monospace,monospace}
.GET{color:#1a7f37}.POST{color:#0969da}.PUT,.PATCH{color:#9a6700}.DELETE{color:#cf222e}
.s{opacity:.75;margin-left:auto;text-align:right}pre{background:var(--soft);padding:.6rem;border-radius:6px;overflow:auto}
table{border-collapse:collapse}td,th{border-bottom:1px solid var(--line);padding:.2rem .6rem;text-align:left;vertical-align:top}
input{font:inherit;width:100%;padding:.4rem;margin:.6rem 0;box-sizing:border-box}
</style></head><body><h1 id="t"></h1><p id="d">Every request carries <code>Authorization: Bearer &lt;token&gt;</code>. The document itself:
<a href="openapi.json">openapi.json</a>.</p><input id="f" placeholder="Filter by path or words" aria-label="Filter"><div id="o">Reading openapi.json …</div>
<script>
(async()=>{
const o=document.getElementById('o');let doc;
try{doc=await (await fetch('openapi.json')).json()}catch(e){o.textContent='openapi.json could not be read: '+e;return}
document.getElementById('t').textContent=doc.info.title+' '+doc.info.version;
const el=(n,c,t)=>{const e=document.createElement(n);if(c)e.className=c;if(t!==undefined)e.textContent=t;return e};
const ref=s=>s&&s.$ref?doc.components.schemas[s.$ref.split('/').pop()]:s;
const type=s=>!s?'':s.$ref?s.$ref.split('/').pop():s.enum?s.enum.join(' | '):s.type==='array'?type(s.items)+'[]':[].concat(s.type||'any').join(' or ');
const example=(s,d=0)=>{s=ref(s)||{};if(s.example!==undefined)return s.example;if(s.enum)return s.enum[0];if(d>6)return null;
 switch([].concat(s.type)[0]){case'object':{const r={};for(const[k,v]of Object.entries(s.properties||{}))r[k]=example(v,d+1);return r}
 case'array':return[example(s.items,d+1)];case'integer':return s.minimum??0;case'number':return 0;case'boolean':return false;default:return''}};
const fields=(s)=>{const t=el('table');s=ref(s)||{};for(const[k,v]of Object.entries(s.properties||{})){const r=el('tr');
 r.append(el('td','p',k+((s.required||[]).includes(k)?' *':'')),el('td','',type(v)),el('td','',v.description||(ref(v)||{}).description||''));t.append(r)}return t};
o.textContent='';
for(const[path,ops]of Object.entries(doc.paths))for(const[m,op]of Object.entries(ops)){
 const d=el('details'),s=el('summary'),M=m.toUpperCase();s.append(el('span','m '+M,M),el('span','p',path),el('span','s',op.summary));d.append(s);
 d.append(el('p','','Access: '+(op['x-required-permission']||'open')));
 if(op.parameters){const t=el('table');for(const p of op.parameters){const r=el('tr');r.append(el('td','p',p.name),el('td','',p.in),el('td','',type(p.schema)),el('td','',p.description||''));t.append(r)}d.append(t)}
 const b=op.requestBody&&op.requestBody.content['application/json'].schema;
 if(b){d.append(el('h4','','Body'),fields(b),el('pre','',JSON.stringify(example(b),null,2)))}
 for(const[c,r]of Object.entries(op.responses)){const j=r.content&&r.content['application/json']&&r.content['application/json'].schema;
  if(j){d.append(el('h4','','Reply '+c),fields(j),el('pre','',JSON.stringify(example(j),null,2)))}}
 d.dataset.q=(M+' '+path+' '+op.summary).toLowerCase();o.append(d)}
document.getElementById('f').addEventListener('input',e=>{const q=e.target.value.toLowerCase();for(const d of o.children)d.hidden=!d.dataset.q.includes(q)});
})();
</script></body></html>
)html";

}  // namespace

std::string docs_page(const std::string& title) { return head + title + rest; }

}  // namespace kubeopera::inline v1::web
